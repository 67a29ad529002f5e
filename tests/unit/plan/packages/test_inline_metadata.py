"""A script that has its dependencies in a comment gets exactly these, as from `uv run`.

`lock_files/script` was written by `uv lock --script`.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan
from plan.packages.inline_metadata import read_inline_metadata
from tests.testbed.public_index import with_public_index

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

UV = Path(sys.executable).with_name("uv")
SCRIPT = Path(__file__).parent / "lock_files" / "script"
LOCKED = (SCRIPT / "ask.py").read_text()
LOCK = {"ask.py.lock": with_public_index((SCRIPT / "ask.py.lock").read_text())}


def planned(script: str, files: dict[str, str] | None = None) -> Planned:
    tree = {**(files or {}), "ask.py": script}
    sources = {path: text.encode() for path, text in tree.items()}
    return make_plan(sources, "ask.py", ["3.11", "3.13"])


def failure(script: str, files: dict[str, str] | None = None) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(script, files)
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


@pytest.mark.parametrize("more", ["", "\n", "\n# a comment", "\n#", "\n\n# /// other\n# x\n# ///"])
def test_a_block_ends_at_the_last_end_mark_of_its_comment(more: str) -> None:
    script = '# x\n# /// script\n# dependencies = [\n#\n#   "rich",\n# ]\n# a = """\n# ///\n# """\n# ///'
    found = read_inline_metadata({"ask.py": (script + more).encode()}, "ask.py")
    assert found is not None
    assert (found.file, found.values) == ("ask.py", {"dependencies": ["rich"], "a": "///\n"})
    assert found.location("dependencies") == "ask.py line 3: dependencies"


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
        (f"# /// script\n# a = {'9' * 5000}\n# ///\n", "ConfigInvalid", "is not valid TOML", "Correct it"),
        (BLOCK.format("") + CODE + BLOCK.format(""), "ConfigInvalid", "several blocks", "Keep one"),
        (
            '# /// script\n# dependencies = ["rich is fine"]\n# ///\n',
            "ConfigInvalid",
            "ask.py line 2: dependencies has 'rich is fine', which is not a package",
            "List packages",
        ),
        (
            '# /// script\n# dependencies = "rich"\n# ///\n',
            "ConfigInvalid",
            "ask.py line 2: dependencies must be a list of strings",
            'For example: dependencies = ["langgraph>=1"].',
        ),
        (
            '# /// script\n# dependencies = ["a @ file:libs/a"]\n# ///\n',
            "DependencyResolution",
            "ask.py: the path of a script's dependency is not read; it has a @ file:libs/a",
            "uv lock --script ask.py",
        ),
        (
            '# /// script\n# dependencies = ["a"]\n# [tool.uv.sources]\n# a = {path = "../a"}\n# ///\n',
            "DependencyResolution",
            "ask.py: [tool.uv.sources] of a script is not read; it has a",
            "uv lock --script ask.py",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(script: str, reason: str, message: str, hint: str) -> None:
    error = failure(script + CODE)
    assert error.reason == reason
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.skipif(shutil.which(UV) is None, reason="uv is not installed (make .venv)")
def test_a_lock_beside_the_script_gives_what_uv_exports() -> None:
    command = [
        str(UV),
        "export",
        "--frozen",
        "--offline",
        "--no-header",
        "--no-annotate",
        "--script",
        "ask.py",
    ]
    done = subprocess.run(command, cwd=SCRIPT, capture_output=True, text=True, check=True)
    expected = {" ".join(line.split()) for line in done.stdout.replace("\\\n", "").splitlines()}
    declaration = planned(LOCKED, {**LOCK, "requirements.txt": "crewai\n"}).declaration
    found = {" ".join(line.split()) for line in declaration.lines}
    assert {" ".join(sorted(line.split())) for line in found} == {
        " ".join(sorted(line.split())) for line in expected
    }
    assert declaration.origin == "ask.py.lock" and declaration.locked
    assert declaration.notes == ("ignored: requirements.txt; the dependencies come from ask.py.lock",)


@pytest.mark.parametrize(
    ("script", "lock", "message"),
    [
        (LOCKED.replace(">=3,<5", ">=5"), LOCK["ask.py.lock"], "it has markdown-it-py 4.3.0, not >=5"),
        (
            LOCKED.replace("six", "rich"),
            LOCK["ask.py.lock"],
            "ask.py.lock does not fit ask.py: it has no rich",
        ),
        (LOCKED, 'requires-python = ">=3.14"', "it is for Python >=3.14, not for 3.11"),
        (LOCKED, "[[package]]\nname = 'six'\n", "ask.py.lock is damaged: 'source' is missing"),
    ],
)
def test_a_lock_that_does_not_fit_says_how_to_lock_again(script: str, lock: str, message: str) -> None:
    error = failure(script, {"ask.py.lock": lock})
    assert error.reason == "DependencyResolution" and message in error.message
    assert error.hint == "Lock again with uv lock --script ask.py, and commit ask.py.lock."


def test_sources_of_a_locked_script_are_those_of_the_lock() -> None:
    source = 'source = { git = "https://github.com/pallets/click?rev=8.1.0#0123456" }\n'
    lock = f'[[package]]\nname = "click"\nversion = "8.1.0"\n{source}'
    script = (
        '# /// script\n# dependencies = ["click"]\n# [tool.uv.sources]\n'
        '# click = { git = "https://github.com/pallets/click", rev = "8.1.0" }\n# ///\nprint()\n'
    )
    found = planned(script, {"ask.py.lock": lock}).declaration
    assert found.direct == ("click @ https://github.com/pallets/click/archive/0123456.tar.gz",)


def test_a_directory_of_a_lock_of_a_script_is_one_of_the_repository() -> None:
    lock = '[[package]]\nname = "six"\nsource = { directory = "libs/six" }\n'
    script = '# /// script\n# dependencies = ["six"]\n# ///\nprint()\n'
    found = planned(script, {"ask.py.lock": lock, "libs/six/setup.py": ""}).declaration
    assert (found.origin, found.projects, found.lines) == ("ask.py.lock", ("libs/six",), ())


def test_a_lock_without_metadata_in_the_script_is_not_read() -> None:
    assert planned("print()\n", {**LOCK, "requirements.txt": "six\n"}).declaration.lines == ("six",)
