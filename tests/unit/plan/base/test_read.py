"""A crew's own Dockerfile: what is executed of it, and what is refused."""

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.pip_log import dependency_failure
from plan.packages.system_packages import APT_SETTINGS

CODE = {"main.py": "def kickoff(inputs): ...\n", "data/a.txt": "a", "data/b/c.txt": "c", "tests/x.py": ""}
DATA = ("data/a.txt", "data/b/c.txt")
CREW = '[build]\ndockerfile = "Dockerfile"\n'


def planned(text: str, crew: str = CREW, project: str = "", **more: str) -> Planned:
    files = {**CODE, "crew.toml": crew, "Dockerfile": text, **more}
    data = {path: each.encode() for path, each in files.items()}
    return make_plan(data, None, ["3.11", "3.13"], dockerfile=project)


def generated(found: Planned) -> list[str]:
    return dockerfile("unused", found.declaration, python=found.plan.python).splitlines()


def copied(text: str, **more: str) -> tuple[str, ...]:
    base = planned(text, **more).declaration.base
    assert base is not None
    return base.copied


def refusal(text: str) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(text)
    assert raised.value.reason == "ConfigInvalid"
    return raised.value


def test_its_image_is_the_base_of_the_dependency_image() -> None:
    found = planned(
        "FROM python:3.13-slim\nRUN echo \\\n  # a comment\n  one\n", **{"requirements.txt": "six\n"}
    )
    lines = generated(found)
    assert lines[0] == "FROM python:3.13-slim" and "RUN echo   one" in lines
    assert not any(line.startswith("FROM unused") for line in lines)
    # Our own instructions come last, with a shell of their own, and end as those of every image.
    last = lines.index("RUN echo   one")
    assert lines[last + 1] == 'SHELL ["/bin/sh", "-c"]'
    assert any("pip install" in line for line in lines[last:])
    assert lines[-2:] == ["WORKDIR /app", "USER 65532:65532"]
    assert found.plan.as_status()["dockerfile"] == "Dockerfile"


@pytest.mark.parametrize(
    ("text", "configured", "python"),
    [
        ("FROM python:3.13-slim", "", "3.13"),
        ("FROM ghcr.io/acme/python:3.12.4-bookworm", "", "3.12"),
        ("FROM debian:12 AS one\nFROM python:3.9", "", "3.11"),
        ("FROM debian:12", "", "3.11"),
        ("FROM python:3.13 AS base\nFROM debian AS more\nFROM Base AS last\nFROM last", "", "3.13"),
        ("FROM debian:12", '[deployment]\npython = "3.14"\n', "3.14"),
        ("FROM python:3.13", '[deployment]\npython = "3.12"\n', "3.12"),
    ],
)
def test_python_of_the_configuration_or_of_the_images_tag(text: str, configured: str, python: str) -> None:
    found = planned(text, configured + CREW)
    assert found.plan.python == python
    assert any(f'"$found" = {python} ]' in line for line in generated(found))


def test_a_wrong_python_is_named() -> None:
    start = "crewyard: the Dockerfile's image has Python"
    wrong = dependency_failure(f"{start} 3.9, not 3.11\nerror building image: exit status 1")
    assert wrong.reason == "ConfigInvalid" and "has Python 3.9, and the crew needs 3.11" in wrong.message
    missing = dependency_failure(f"{start} none, not 3.11\nerror building image: exit status 1")
    assert "has no Python" in missing.message and "python3" in missing.hint
    shell = dependency_failure("starting command: fork/exec /bin/sh: no such file or directory")
    assert "has no shell" in shell.message


def test_a_missing_image_is_named() -> None:
    url = "http://registry.test:5000/v2/library/python/manifests/none"
    log = f"unable to complete operation after 0 attempts, last error: GET {url}: MANIFEST_UNKNOWN: unknown"
    failure = dependency_failure(f"error building image: {log}; map[Tag:none]")
    assert failure.reason == "ConfigInvalid"
    assert "registry.test:5000/v2/library/python:none does not exist" in failure.message


def test_the_projects_dockerfile_comes_first() -> None:
    found = planned("FROM one", project="docker/Other", **{"docker/Other": "FROM two"})
    assert generated(found)[0] == "FROM two" and found.plan.dockerfile == "docker/Other"
    assert planned("FROM one", crew="").declaration.base is None


@pytest.mark.parametrize("path", ["gone", "../Dockerfile", "/Dockerfile", "./Dockerfile", "data"])
def test_a_path_that_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="not a file of the source"):
        planned("FROM one", crew=f'[build]\ndockerfile = "{path}"\n')


def test_a_long_path_is_refused() -> None:
    with pytest.raises(PlanError, match="of the Project has 257 characters"):
        planned("FROM one", project="d" * 257)
    longest = "d" * 256
    assert generated(planned("FROM one", project=longest, **{longest: "FROM two"}))[0] == "FROM two"


def test_variables_of_from_are_resolved() -> None:
    text = 'ARG A=3.12 B="slim" C=a=b\nFROM --platform=$BUILDPLATFORM python:$A-${B} AS Build\n'
    text += "FROM build\nFROM x:${D:-1}\nFROM $C\n"
    lines = generated(planned(text))
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM python:3.12-slim AS build",
        "FROM build",
        "FROM x:1",
        "FROM a=b",
    ]


def test_a_default_of_arg_may_have_the_ones_before_it() -> None:
    text = "ARG V=3.12\nARG TAG=${V}-slim I=python:$TAG\nFROM $I\n"
    assert "FROM python:3.12-slim" in generated(planned(text))
    doubled = "".join(f"ARG V{number}=$V{number - 1}$V{number - 1}\n" for number in range(1, 200))
    with pytest.raises(PlanError, match=r"line 201: the image one:\$V199 has a variable without a value"):
        planned(f"ARG V0=1\n{doubled}FROM one:$V199\n")


def test_an_image_loses_its_user_and_a_stage_with_run_gets_settings_of_apt() -> None:
    text = "ARG V=1\nFROM one AS Base\nRUN make\nFROM two AS more\nCOPY data /x\nFROM base\nRUN true\n"
    text += "COPY --from=BASE --chown=1:1 /x /y\nCOPY --from=0 /x /z\n"
    lines = generated(planned(text))
    # The builder cannot become another user; the variable has no value.
    assert lines[: lines.index("RUN set -eu; \\")] == [
        "ARG V=1",
        "FROM one AS base",
        "USER ${CREWYARD_NO_USER}",
        APT_SETTINGS.strip(),
        "RUN make",
        "FROM two AS more",
        "USER ${CREWYARD_NO_USER}",
        "COPY data /x",
        "FROM base",
        APT_SETTINGS.strip(),
        "RUN true",
        "COPY --from=base --chown=1:1 /x /y",
        "COPY --from=0 /x /z",
        'SHELL ["/bin/sh", "-c"]',
        "RUN found=$(python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])' 2>/dev/null)"
        " || found=none; \\",
        '    [ "$found" = 3.11 ] || { echo "crewyard: the Dockerfile\'s image has Python $found, not 3.11";'
        " exit 1; }; \\",
        "    rm -rf /app/artifacts /opt/crewyard",
    ]


def test_instructions_without_effect_are_noted() -> None:
    found = planned("FROM one\nUSER app\nRUN id\nCMD run\nHEALTHCHECK --interval=1s CMD x\nVOLUME /data\n")
    base = found.declaration.base
    assert base is not None and [each.word for each in base.instructions] == ["FROM", "RUN"]
    (note,) = base.notes
    assert "Dockerfile: ignored instructions: USER, CMD, HEALTHCHECK, VOLUME" in note


@pytest.mark.parametrize(
    ("text", "line", "problem", "hint"),
    [
        ("RUN true", 1, "RUN is before FROM", "Only ARG may be before FROM"),
        ("# nothing", 1, "there is no FROM", "Start with an image"),
        ("FROM one\n\nINCLUDE x \\", 3, "INCLUDE is not supported", "FROM, RUN, COPY, ADD, ENV, ARG, LABEL"),
        (
            "FROM one\nRUN --mount=type=secret,id=x cat",
            2,
            "RUN --mount=type=secret,id=x is not supported",
            "COPY the files",
        ),
        (
            "FROM one\nRUN --mount=type=cache,target=/x --network=host true",
            2,
            "RUN --network=host is not supported",
            "Remove that option",
        ),
        ("FROM one\nRUN <<EOF\nid\nEOF", 2, "here-documents are not supported", "copy a script"),
        ("FROM one\nCOPY <<EOF /x\nid\nEOF", 2, "here-documents are not supported", "copy a script"),
        ("FROM one\nADD <<EOF /x\nid\nEOF", 2, "here-documents are not supported", "copy a script"),
        ("FROM one\nCOPY --parents a b", 2, "COPY --parents is not supported", "Remove that option"),
        ("FROM one\nENV --x A=1", 2, "ENV --x is not supported", "Remove that option"),
        ("FROM one\nCOPY data", 2, "COPY needs a source and a target", "Write both"),
        ("FROM one\nCOPY []", 2, "COPY needs a source and a target", "Write both"),
        ("FROM one\nCOPY " + "[" * 50_000, 2, "COPY needs a source and a target", "Write both"),
        ("FROM one\nADD data", 2, "ADD needs a source and a target", "Write both"),
        ("FROM one\nCOPY gone.txt /x", 2, "the source has no file 'gone.txt'", "Correct the path"),
        ("FROM one\nCOPY ../data /x", 2, "'../data' leaves the source", "files of the source only"),
        (
            "FROM one\nCOPY data /workspace/data",
            2,
            "/workspace/data is a directory of the builder",
            "such as /srv",
        ),
        ("FROM one\nADD data /kaniko/x", 2, "/kaniko/x is a directory of the builder", "such as /srv"),
        ("FROM one\nWORKDIR /kaniko", 2, "/kaniko is a directory of the builder", "such as /srv"),
        (
            "FROM one\nCOPY --link --from=$X /a /b",
            2,
            "--from=$X is neither a stage nor an image",
            "Write its name",
        ),
        ("FROM one\nCOPY --from /a /b", 2, "--from= is neither a stage nor an image", "Write its name"),
        ("FROM --platform=linux/arm64 one", 1, "--platform=linux/arm64 is not supported", "omit it"),
        ("ARG V\nFROM one:$V", 2, "the image one:$V has a variable without a value", "a default"),
        ("ARG V='1\nFROM one:$V", 2, "the image one:$V has a variable without a value", "a default"),
        ("FROM one two", 1, "FROM one two is not valid", "AS name"),
        ("FROM one\nRUN", 2, "RUN has no arguments", "Complete or remove"),
        (
            "#\n#\n#\n#\n# escape=`\nFROM one",
            1,
            "another escape character is not supported",
            "remove that line",
        ),
        ("FROM one\n" + "RUN true\n" * 500, 501, "more than 500 instructions", "Join"),
    ],
)
def test_what_a_build_cannot_honour_is_refused_with_its_line(
    text: str, line: int, problem: str, hint: str
) -> None:
    refused = refusal(text)
    assert refused.message == f"Dockerfile line {line}: {problem}"
    assert hint in refused.hint


def test_a_large_dockerfile_is_refused() -> None:
    assert "at most 65536 are read" in refusal("#" * (64 << 10) + "\nFROM one").message


@pytest.mark.parametrize(
    "text",
    [
        "FROM one\n" + "RUN true\n" * 499,
        "FROM one\n\n\n\n\n# escape=` is a comment here\n",
        "FROM one\nWORKDIR []\n",
        "FROM one\nENV TARGET /workspace\n",
        "FROM one\nWORKDIR /workspaces/tides\nCOPY data /kaniko-data/\n",
    ],
)
def test_what_is_near_a_limit_is_executed(text: str) -> None:
    assert generated(planned(text))[0] == "FROM one"


def test_the_last_line_does_not_continue_in_ours() -> None:
    for end in ("\\", "\\\\", "\\ \n\\", "\\\n# a comment", "\n\t\\", "\\\n\t\\"):
        lines = generated(planned(f"FROM one\nRUN echo X {end}"))
        assert lines[lines.index("RUN echo X") + 1] == 'SHELL ["/bin/sh", "-c"]'


def test_a_cache_is_left_out_without_another_result() -> None:
    text = (
        "FROM one\nRUN --mount=type=cache,target=/root/.cache,sharing=locked uv sync\nCOPY --link data /data"
    )
    assert {"RUN uv sync", "COPY data /data"} <= set(generated(planned(text)))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("RUN true", ()),
        ("COPY data/a.txt /x", ("data/a.txt",)),
        ("ADD data/a.txt /x", ("data/a.txt",)),
        ("COPY [data] /x", ("Dockerfile", "crew.toml", *DATA, "main.py", "tests/x.py")),
        ("COPY ./data/ /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY data/*.txt main.py /x", ("data/a.txt", "main.py")),
        ("COPY main.py uv.lock* poetry.loc? /x/", ("main.py",)),
        ('COPY ["data/b", "/x"]', ("data/b/c.txt",)),
        ("COPY data/$X /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY data/[ab].txt /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY . /app", ("Dockerfile", "crew.toml", *DATA, "main.py", "tests/x.py")),
        ("COPY **/c.txt /x", ("Dockerfile", "crew.toml", *DATA, "main.py", "tests/x.py")),
        ("ADD https://example.com/x http://example.com/y /x", ()),
        ("COPY --from=other /a /b", ()),
    ],
)
def test_the_context_is_what_it_can_copy(text: str, paths: tuple[str, ...]) -> None:
    assert copied(f"FROM one\n{text}\n") == paths


def test_excluded_files_are_not_in_the_context_but_the_ignore_file_is() -> None:
    crew = '[build]\ndockerfile = "Dockerfile"\nexclude = ["tests", "Dockerfile"]\n'
    found = copied("FROM one\nCOPY . /app\n", crew=crew, **{".dockerignore": "*.md\n"})
    assert found == (".dockerignore", "crew.toml", "data/a.txt", "data/b/c.txt", "main.py")
    with pytest.raises(PlanError, match="exclude may exclude it"):
        try:
            planned("FROM one\nCOPY tests /x\n", crew=crew)
        except PlanError as error:
            raise PlanError(error.reason, error.hint) from None


def test_the_key_has_the_text_the_python_and_the_files() -> None:
    def key(text: str, copied: str = "", python: str = "3.11") -> str:
        return dependencies_key(planned(text).declaration, python, "", "tree", copied=copied)

    one = key("FROM one\nCOPY data /x\n", "a")
    assert key("FROM one\nCOPY data /x\n# a comment\n", "a") == one
    assert len({one, key("FROM one\nCOPY data /x\n", "b"), key("FROM two\nCOPY data /x\n", "a")}) == 3
    assert key("FROM one\nCOPY data /x\n", "a", "3.12") != one
    assert key("FROM one\nRUN true\n", "a") == key("FROM one\nRUN true\n", "b")


def test_a_dockerfile_that_nothing_names_is_noted() -> None:
    notes = planned("FROM python:3.11-slim", crew="").notes
    assert notes == (
        "Dockerfile is not used; to build on its image, set spec.build.dockerfile of the Project, "
        'or [build] dockerfile = "Dockerfile"',
    )
    for used in ({"crew": CREW}, {"crew": "", "project": "Dockerfile"}):
        assert not any("is not used" in note for note in planned("FROM python:3.11-slim", **used).notes)
