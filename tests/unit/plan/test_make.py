"""The plan of a source as a whole: what runs, what is installed, and the notes in their order."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from plan.errors import PlanError
from plan.make import Plan, Planned, make_plan
from plan.packages.dependencies import DependencyDeclaration

MAIN = "def kickoff(inputs): ...\n"
OFFERED = ("3.11", "3.12")
NOTHING = DependencyDeclaration("")
UNUSED = (
    "Dockerfile is not used; to build on its image, set spec.build.dockerfile of the Project, "
    'or [build] dockerfile = "Dockerfile"'
)
UNDECLARED = (
    "no dependencies are declared, but the source imports rich; add a requirements.txt, or name the packages "
    "in the project: crewyard projects set PROJECT --requirement NAME"
)
WHOLE = """\
[deployments.one]
framework = "crewai"
entrypoint = "pkg.crew:One"
python = "3.12"
smoke = {timeout = "2m"}
[deployments.two]
entrypoint = "main:kickoff"
[build]
exclude = ["tests"]
[run]
timeout = "1h"
env_required = ["KEY"]
[run.inputs]
topic = "string"
[artifacts]
include = ["*.md"]
"""
TOPIC = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
TYPED = "class In(TypedDict):\n    topic: str\ndef kickoff(inputs: In): ...\n"
ALL_NOTES = json.dumps(
    {
        "graphs": {"one": "./a.py:g", "two": "./gone.py:g"},
        "http": 1,
        "python_version": "3.14",
        "dependencies": ["."],
    }
)
SHARED = json.dumps({"graphs": {"one": "./main.py:kickoff"}, "dependencies": [".", "../shared"]})
INLINE = "# /// script\n# requires-python = '>=3.12'\n# dependencies = ['rich']\n# ///\nprint()\n"


def made(files: dict[str, str], crew: str | None = None, **more: object) -> Planned:
    encoded = {path: text.encode() for path, text in files.items()}
    return make_plan(encoded, crew, OFFERED, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "crew", "expected"),
    [
        ({"main.py": MAIN}, None, Planned(Plan("python", "main:kickoff", "3.11"), NOTHING, {})),
        (
            {"crew.toml": WHOLE, "pkg/crew.py": "class One: ...", "main.py": MAIN, "tests/a.py": ""},
            None,
            Planned(
                Plan(
                    "crewai",
                    "pkg.crew:One",
                    "3.12",
                    timeout="1h",
                    env_required=("KEY",),
                    entrypoints={"one": "pkg.crew:One", "two": "main:kickoff"},
                    artifacts=("*.md",),
                    smoke={"timeout": "2m"},
                    inputs=TOPIC,
                    inputs_declared=True,
                ),
                NOTHING,
                {"tests/a.py": "tests"},
            ),
        ),
        ({"main.py": TYPED}, None,
         Planned(Plan("python", "main:kickoff", "3.11", inputs=TOPIC), NOTHING, {})),
        (
            {"main.py": INLINE},
            "main.py",
            Planned(Plan("python", "main.py", "3.12"), DependencyDeclaration("main.py", ("rich",)), {}),
        ),
        (
            {"a.py": INLINE + "f = 1", "requirements.txt": "crewai\n"},
            "a:f",
            Planned(
                Plan("crewai", "a:f", "3.11"), DependencyDeclaration("requirements.txt", ("crewai",)), {}
            ),
        ),
        (
            {"main.py": "import rich\n" + MAIN, "Dockerfile": "FROM x"},
            None,
            Planned(Plan("python", "main:kickoff", "3.11"), NOTHING, {}, (UNDECLARED, UNUSED)),
        ),
        (
            {"flow.yaml": "x: 1", "a.py": "import rich", "crew.toml": "[build]\nexclude = ['Dockerfile']\n",
             "Dockerfile": "FROM x"},
            "flow.yaml",
            Planned(Plan("python", "flow.yaml", "3.11"), NOTHING, {"Dockerfile": "Dockerfile"}),
        ),
    ],
)  # fmt: skip
def test_plan_of_a_source(files: dict[str, str], crew: str | None, expected: Planned) -> None:
    assert made(files, crew) == expected


def test_notes_are_in_the_order_of_the_steps() -> None:
    files = {
        "langgraph.json": ALL_NOTES,
        "a.py": "g = 1\ncrew.kickoff()\n",
        "requirements.txt": "rich\n",
        "Dockerfile": "FROM x",
    }
    notes = made(files, requirements=("lxml",)).notes
    assert [note.partition(": ")[0] for note in notes[:2]] == ["langgraph.json", "langgraph.json"]
    assert "ignored keys: http" in notes[0] and "python_version is '3.14'" in notes[1]
    assert notes[2].startswith("a.py line 2 runs when the module is imported")
    assert notes[3].startswith("two is left out: gone.py or src/gone.py not found")
    assert notes[4:] == ("spec.build.requirements of the Project adds: lxml", UNUSED)


def test_other_crews_are_checked_like_the_default() -> None:
    crews = "".join(f"[deployments.{name}]\nentrypoint = '{name}:f'\n" for name in ("a", "b", "c"))
    files = {
        "crew.toml": f"{crews}[build]\nexclude = ['c.py']\n",
        "a.py": "f = 1",
        "b.py": "x = <syntax of a later Python>",
        "c.py": "f = 1",
    }
    planned = make_plan({path: text.encode() for path, text in files.items()}, None, ["3.99"])
    assert planned.plan.entrypoints == {"a": "a:f", "b": "b:f"}
    assert planned.notes == (
        "c is left out: c.py, needed for c:f (crew.toml line 6: deployments.c.entrypoint), is excluded by "
        "the pattern 'c.py'",
    )


def test_project_decides_on_index_packages_and_the_files_outside() -> None:
    files = {"main.py": MAIN, "requirements.txt": "langgraph\n"}
    planned = made(files, private_index=True, requirements=("lxml",))
    assert planned.declaration.private_index and planned.declaration.added == ("lxml",)
    shared = {"shared/pyproject.toml": b"[project]\nname = 'shared'\ndependencies = ['rich']\n"}
    planned = made({"main.py": MAIN, "langgraph.json": SHARED}, base="crew", outside=shared)
    assert (planned.declaration.lines, planned.declaration.projects) == (("rich",), ("shared",))


class Monorepo(dict[str, bytes]):
    """Files of a repository with too many to list."""

    def __iter__(self) -> Iterator[str]:
        raise PlanError("ContextTooLarge", "the repository has more than 50000 entries")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def test_a_source_without_a_workspace_needs_no_list_of_the_repository() -> None:
    outside = Monorepo({"shared/pyproject.toml": b"[project]\nname = 'shared'\n"})
    files = {"main.py": MAIN, "requirements-dev.txt": "pytest\n"}
    planned = made(files, base="crew", outside=outside)
    assert planned.notes == (
        "ignored: crew/requirements-dev.txt; the dependencies come from no file; add a requirements.txt or a "
        "pyproject.toml",
    )
    assert made({**files, "langgraph.json": SHARED}, base="crew", outside=outside).declaration.projects == (
        "shared",
    )
    with pytest.raises(PlanError, match="more than 50000 entries"):
        made({**files, "pyproject.toml": "[tool.uv.workspace]\n"}, base="crew", outside=outside)


def test_packages_that_the_project_adds_need_no_declaration() -> None:
    planned = made({"main.py": "import rich\n" + MAIN}, requirements=("rich",))
    assert planned.notes == ("spec.build.requirements of the Project adds: rich",)


@pytest.mark.parametrize(
    ("image", "requires", "python"),
    [
        ("python:3.12-slim", "", "3.12"),
        ("python:3.14-slim", "", "3.14"),
        ("python:3.9", "", "3.11"),
        ("debian", "", "3.11"),
        ("debian", ">=3.14", "3.14"),
        ("python:3.12", "<3.12", "3.11"),
    ],
)
def test_image_of_the_own_dockerfile_tells_the_python(image: str, requires: str, python: str) -> None:
    files = {
        "main.py": "import rich\n" + MAIN,
        "Dockerfile": f"FROM {image}\nUSER x\n",
        "crew.toml": "[build]\ndockerfile = 'Dockerfile'\nexclude = ['Dockerfile']\n",
        **({"pyproject.toml": f"[project]\nrequires-python = '{requires}'\n"} if requires else {}),
    }
    planned = made(files)
    assert (planned.plan.python, planned.plan.dockerfile) == (python, "Dockerfile")
    assert planned.declaration.base is not None and planned.declaration.base.path == "Dockerfile"
    assert planned.notes == planned.declaration.base.notes != ()


@pytest.mark.parametrize(
    ("project", "origin"),
    [("", "crew.toml line 2: build.dockerfile"), ("gone", "spec.build.dockerfile of the Project")],
)
def test_dockerfile_of_the_project_comes_before_the_configured_one(project: str, origin: str) -> None:
    files = {"main.py": MAIN, "crew.toml": "[build]\ndockerfile = 'gone'\n", "Dockerfile": "FROM x"}
    with pytest.raises(PlanError) as raised:
        made(files, dockerfile=project)
    assert raised.value.message.startswith(origin)
    assert made(files, dockerfile="Dockerfile").plan.dockerfile == "Dockerfile"


def test_status_has_only_what_is_set() -> None:
    plan = Plan("python", "a:f", "3.11")
    status = {"framework": "python", "entrypoint": "a:f", "python": "3.11", "envRequired": []}
    assert plan.as_status() == status
    whole = replace(
        plan,
        timeout="1h",
        env_required=("KEY",),
        entrypoints={"one": "a:f"},
        artifacts=("*.md",),
        smoke={},
        inputs=TOPIC,
        inputs_declared=True,
        dockerfile="Dockerfile",
    )
    assert whole.as_status() == {
        **status,
        "timeout": "1h",
        "envRequired": ["KEY"],
        "entrypoints": {"one": "a:f"},
        "artifacts": ["*.md"],
        "smoke": {},
        "inputs": {"schema": TOPIC, "declared": True},
        "dockerfile": "Dockerfile",
    }


VARIABLES = [f"V{number:03}{'X' * 12}" for number in range(128)]
SMOKE = f"[deployment]\nsmoke.input.a = '{'x' * 700}'\n"


def sized(artifact: str, more: str = "", main: str = MAIN) -> Planned:
    toml = f"[artifacts]\ninclude = ['{artifact}']\n[run]\nenv_required = {VARIABLES}\n{more}"
    return made({"crew.toml": toml, "main.py": main})


def size(planned: Planned) -> int:
    return len(json.dumps(planned.plan.as_status(), separators=(",", ":")))


def test_plan_has_at_most_3300_bytes() -> None:
    """A larger one would not fit into the termination message of a build pod."""
    letters = 3300 - size(sized("a", SMOKE)) + 1
    assert size(sized("a" * letters, SMOKE)) == 3300
    with pytest.raises(PlanError) as raised:
        sized("a" * (letters + 1), SMOKE)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        "smoke, inputs, env_required, entrypoints and artifacts together have 3301 bytes as JSON",
        "Use at most 3300: a shorter input of smoke, or fewer names.",
    )


def test_plan_without_smoke_and_inputs_is_limited_too() -> None:
    crews = "".join(f"[deployments.{'n' * 50}{number:02}]\n" for number in range(12))
    with pytest.raises(PlanError, match=r"together have 3\d{3} bytes as JSON"):
        sized("a" * 400, crews)


def test_found_inputs_that_make_the_plan_too_large_are_left_out() -> None:
    typed = TYPED.replace("topic", "t" * 300)
    letters = 3300 - size(sized("a", main=typed)) + 1
    assert 0 < letters < 512
    assert sized("a" * letters, main=typed).plan.inputs is not None
    assert sized("a" * (letters + 1), main=typed).plan.inputs is None
