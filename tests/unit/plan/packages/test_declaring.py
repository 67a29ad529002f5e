"""A collection: each directory declares its own dependencies, the root declares none."""

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan

SCRIPT = "from agents import Agent\nif __name__ == '__main__':\n    Agent()\n"
OBJECT = "from pydantic_ai import Agent\nagent = Agent('m')\n"
PROJECT = "[project]\nname = 'x'\nrequires-python = '>=3.13'\ndependencies = ['rich']\n"
COLLECTION = {
    "pyproject.toml": "[tool.ruff]\nline-length = 100\n",
    "hello/main.py": SCRIPT,
    "hello/tools/search.py": SCRIPT,
    "hello/pyproject.toml": PROJECT,
    "trip/agent.py": OBJECT,
    "trip/requirements.txt": "pydantic-ai\n",
}


def planned(crew: str | None, files: dict[str, str]) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, crew, ["3.11", "3.13"])


@pytest.mark.parametrize(
    ("crew", "origin", "lines", "python"),
    [
        ("hello/main.py", "hello/pyproject.toml", ("rich",), "3.13"),
        ("hello/tools/search.py", "hello/pyproject.toml", ("rich",), "3.13"),
        ("trip.agent:agent", "trip/requirements.txt", ("pydantic-ai",), "3.11"),
    ],
)
def test_the_directory_of_the_entrypoint_declares(
    crew: str, origin: str, lines: tuple[str, ...], python: str
) -> None:
    found = planned(crew, COLLECTION)
    declaration = found.declaration
    assert (declaration.origin, declaration.lines, declaration.projects) == (origin, lines, ())
    assert found.plan.python == python


def test_what_the_root_declares_comes_first() -> None:
    files = {**COLLECTION, "requirements.txt": "openai-agents\n"}
    found = planned("hello/main.py", files)
    assert (found.declaration.origin, found.plan.python) == ("requirements.txt", "3.11")


def test_the_directory_of_a_script_is_proposed() -> None:
    files = {"requirements.txt": "rich\n", "hello/main.py": SCRIPT, "hello/pyproject.toml": PROJECT}
    with pytest.raises(PlanError) as raised:
        planned(None, {**files, "trip/main.py": SCRIPT})
    assert raised.value.hint == (
        "hello/main.py is a script with dependencies of its own; deploy its directory: "
        "crewyard deploy hello, or spec.source.git.path of the Project."
    )


@pytest.mark.parametrize(
    "root",
    [
        "[project]\nname = 'root'\ndependencies = []\n",
        "[tool.poetry]\nname = 'root'\n[tool.poetry.dependencies]\npython = '>=3.11'\n",
    ],
)
def test_a_root_with_an_empty_list_declares_none(root: str) -> None:
    found = planned("hello/main.py", {**COLLECTION, "pyproject.toml": root})
    assert (found.declaration.origin, found.plan.python) == ("hello/pyproject.toml", "3.13")


def test_dynamic_dependencies_of_a_directory_are_refused() -> None:
    dynamic = "[project]\nname = 'x'\ndynamic = ['dependencies']\n"
    with pytest.raises(PlanError, match=r"hello/pyproject\.toml: \[project\] declares .* as dynamic"):
        planned("hello/main.py", {**COLLECTION, "hello/pyproject.toml": dynamic})


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"agent.py": "from langgraph.graph import Graph\nimport os, google.adk\n"}, "google.adk, langgraph"),
        ({"agent.py": "from tides import x\n", "src/tides/__init__.py": "import pandas as pd\n"}, "pandas"),
        ({"agent.py": "from tides.low import x\n", "tides/low.py": "from . import high\n",
          "tides/high.py": "import rich\n"}, "rich"),
        ({"agent.py": "try:\n    import rich\nexcept ImportError:\n    rich = None\n"}, ""),
        ({"agent.py": "def f():\n    import rich\n"}, ""),
        ({"agent.py": "import json, agent, crewyard_runtime\nfrom __future__ import annotations\n"}, ""),
        ({"agent.py": "import rich\n", "requirements.txt": "rich\n"}, ""),
        ({"agent.py": "import rich\n", "requirements.txt": "# none\n"}, ""),
    ],
)  # fmt: skip
def test_imports_of_a_source_that_declares_nothing_are_noted(files: dict[str, str], named: str) -> None:
    code = "def kickoff(inputs): ...\n"
    notes = planned("agent:kickoff", {**files, "agent.py": files["agent.py"] + code}).notes
    expected = (
        f"no dependencies are declared, but the source imports {named}; add a requirements.txt, or name "
        "the packages in the project: crewyard projects set PROJECT --requirement NAME"
    )
    assert notes == ((expected,) if named else ())


def test_packages_that_the_project_adds_are_declared() -> None:
    files = {"agent.py": b"import rich\ndef kickoff(inputs): ...\n"}
    (note,) = make_plan(files, "agent:kickoff", ["3.11"], requirements=("rich",)).notes
    assert note == "spec.build.requirements of the Project adds: rich"
