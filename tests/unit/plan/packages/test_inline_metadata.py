"""A script that has its dependencies in a comment gets exactly these, as from `uv run`."""

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan

HEAD = "#!/usr/bin/env -S uv run\n"
BLOCK = """# /// script
# requires-python = "{}"
# dependencies = [
#   "pydantic-ai==1.1.0",
#   "rich >= 14 ; python_version >= '3.11'",
# ]
# ///
"""
CODE = "from pydantic_ai import Agent\nprint(Agent('m').run_sync('?').output)\n"
PROJECT = "[project]\nname = 'tides'\nrequires-python = '>=3.11,<3.13'\ndependencies = ['langgraph']\n"
BESIDE = {"pyproject.toml": PROJECT, "requirements.txt": "crewai\n", "uv.lock": "damaged"}


def planned(script: str, files: dict[str, str] | None = None) -> Planned:
    tree = {**(files or {}), "ask.py": script}
    sources = {path: text.encode() for path, text in tree.items()}
    return make_plan(sources, "ask.py", ["3.11", "3.13"])


def failure(script: str) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(script)
    return raised.value


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_its_dependencies_take_the_place_of_all_others(newline: str) -> None:
    script = (HEAD + BLOCK.format(">=3.12") + CODE).replace("\n", newline)
    found = planned(script, BESIDE)
    assert found.plan.python == "3.13"
    assert found.declaration.lines == ("pydantic-ai==1.1.0", "rich >= 14 ; python_version >= '3.11'")
    assert found.declaration.origin == "ask.py"
    assert found.notes[-1] == (
        "ignored: uv.lock, requirements.txt, pyproject.toml; the dependencies come from ask.py"
    )


@pytest.mark.parametrize(
    "block",
    [
        '# /// script\n# requires-python = ">=3.13"\n# ///\n',
        '# /// other\n# dependencies = ["rich"]\n# ///\n',
        '# /// script\n# dependencies = ["rich"]\n',
    ],
)
def test_a_block_without_dependencies_leaves_the_files(block: str) -> None:
    assert planned(block + CODE, {"requirements.txt": "crewai\n"}).declaration.lines == ("crewai",)


def test_a_module_of_an_object_has_no_metadata() -> None:
    files = {"ask.py": BLOCK.format(">=3.13") + "def ask():\n    ...\n", "requirements.txt": "crewai\n"}
    sources = {path: text.encode() for path, text in files.items()}
    found = make_plan(sources, "ask:ask", ["3.11", "3.13"])
    assert (found.plan.python, found.declaration.lines) == ("3.11", ("crewai",))


@pytest.mark.parametrize(
    ("script", "reason", "message", "hint"),
    [
        (
            HEAD + BLOCK.format(">=3.14"),
            "ConfigInvalid",
            "ask.py line 3: requires-python is '>=3.14'; offered here: 3.11, 3.13",
            "Widen it",
        ),
        ("# /// script\n# dependencies = [\n# ///\n", "ConfigInvalid", "is not valid TOML", "Correct it"),
        (BLOCK.format("") + CODE + BLOCK.format(""), "ConfigInvalid", "several blocks", "Keep one"),
        (
            '# /// script\n# dependencies = ["rich is fine"]\n# ///\n',
            "ConfigInvalid",
            "ask.py line 2: dependencies has 'rich is fine', which is not a package",
            "List packages",
        ),
        (
            '# /// script\n# dependencies = ["a"]\n# [tool.uv.sources]\n# a = {path = "../a"}\n# ///\n',
            "DependencyResolution",
            "ask.py: [tool.uv.sources] of a script is not read; it has a",
            "git+https",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(script: str, reason: str, message: str, hint: str) -> None:
    error = failure(script + CODE)
    assert error.reason == reason
    assert message in error.message
    assert hint in (error.hint or "")
