"""A crew's own Dockerfile: what is executed of it, and what is refused."""

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.pip_log import dependency_failure

CODE = {"main.py": "def kickoff(inputs): ...\n", "data/a.txt": "a", "data/b/c.txt": "c", "tests/x.py": ""}
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
    with pytest.raises(PlanError, match="has 300 characters"):
        planned("FROM one", project="d" * 300)


def test_variables_of_from_are_resolved() -> None:
    text = 'ARG A=3.12 B="slim"\nFROM --platform=$BUILDPLATFORM python:$A-${B} AS Build\n'
    text += "FROM build\nFROM x:${C:-1}"
    lines = generated(planned(text))
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM python:3.12-slim AS build",
        "FROM build",
        "FROM x:1",
    ]


def test_the_user_of_an_image_is_replaced_by_none() -> None:
    # The builder cannot become another user; the variable has no value.
    lines = generated(planned("FROM one AS a\nFROM a\nFROM two\nRUN true\n"))
    assert [lines[at - 1] for at, line in enumerate(lines) if line == "USER ${CREWYARD_NO_USER}"] == [
        "FROM one AS a",
        "FROM two",
    ]


def test_instructions_without_effect_are_noted() -> None:
    found = planned("FROM one\nUSER app\nRUN id\nCMD run\nHEALTHCHECK --interval=1s CMD x\nVOLUME /data\n")
    base = found.declaration.base
    assert base is not None and [each.word for each in base.instructions] == ["FROM", "RUN"]
    (note,) = base.notes
    assert "Dockerfile: ignored instructions: USER, CMD, HEALTHCHECK, VOLUME" in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RUN true", "line 1: RUN is before FROM"),
        ("# nothing", "there is no FROM"),
        ("FROM one\n\nINCLUDE x", "line 3: INCLUDE is not supported"),
        (
            "FROM one\nRUN --mount=type=secret,id=x cat",
            "line 2: RUN --mount=type=secret,id=x is not supported",
        ),
        ("FROM one\nRUN --network=host true", "RUN --network=host is not supported"),
        ("FROM one\nRUN <<EOF\nid\nEOF", "here-documents"),
        ("FROM one\nCOPY --parents a b", "COPY --parents is not supported"),
        ("FROM one\nCOPY data", "needs a source and a target"),
        ("FROM one\nCOPY gone.txt /x", "line 2: the source has no file 'gone.txt'"),
        ("FROM one\nCOPY ../data /x", "'../data' leaves the source"),
        ("FROM one\nCOPY data /workspace/data", "/workspace/data is a directory of the builder"),
        ("FROM one\nWORKDIR /kaniko", "/kaniko is a directory of the builder"),
        ("FROM one\nCOPY --from=$X /a /b", "has a variable"),
        ("FROM --platform=linux/arm64 one", "--platform=linux/arm64 is not supported"),
        ("ARG V\nFROM one:$V", "has a variable without a value"),
        ("FROM one two", "FROM one two is not valid"),
        ("FROM one\nRUN", "RUN has no arguments"),
        ("# escape=`\nFROM one", "another escape character"),
        ("FROM one\n" + "RUN true\n" * 500, "line 501: more than 500 instructions"),
        ("#" * (64 << 10) + "\nFROM one", "at most 65536 are read"),
    ],
)
def test_what_a_build_cannot_honour_is_refused_with_its_line(text: str, message: str) -> None:
    assert message in refusal(text).message


def test_the_last_line_does_not_continue_in_ours() -> None:
    for end in ("\\", "\\\\", "\\ \n\\", "\\\n# a comment"):
        lines = generated(planned(f"FROM one\nRUN true {end}"))
        assert lines[lines.index("RUN true") + 1] == 'SHELL ["/bin/sh", "-c"]'


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
        ("COPY ./data/ /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY data/*.txt main.py /x", ("data/a.txt", "main.py")),
        ('COPY ["data/b", "/x"]', ("data/b/c.txt",)),
        ("COPY data/$X /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY data/[ab].txt /x", ("data/a.txt", "data/b/c.txt")),
        ("COPY . /app", ("Dockerfile", "crew.toml", "data/a.txt", "data/b/c.txt", "main.py", "tests/x.py")),
        ("ADD https://example.com/x /x", ()),
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
