"""Entrypoints that are files: scripts, and declarative crews and flows."""

import pytest

from plan.errors import PlanError
from plan.file_entrypoint import check_file_entrypoint, is_file_entrypoint

FILES = {
    "main.py": "run()",
    "src/tide/agent.py": "from agents import Agent\nroot_agent = Agent()\n",
    "names.py": '"""Names."""\nimport os\nfrom a import b\nX = 1\nY: int = 2\nclass A: ...\npass\n',
    "more.py": "async def f(): ...\n1\n",
    "broken.py": "def broken(:\n",
    "newer.py": "x = <syntax of a later Python>\n",
    "a/flow.yaml": "",
    "typer_line.py": "import typer\napp = typer.Typer()\n@app.command()\ndef run(): ...\n",
    "src/click_line.py": "from click import command\n@command\ndef run(): ...\n",
    "own_line.py": "from mine import command, Typer\n@command\ndef run(): ...\napp = Typer()\n",
    "asks.py": "answer = crew.kickoff()\n",
    "calls.py": "from crewai import Agent\nagent = Agent()\nanswer: str = agent('Tides?')\n",
}
PYTHON_FILES = sorted(path for path in FILES if path.endswith(".py"))
LISTED = f"{', '.join(PYTHON_FILES[:10])} and {len(PYTHON_FILES) - 10} more"


def check(entrypoint: str, python: str = "3.99") -> str:
    files = {path: text.encode() for path, text in FILES.items()}
    return check_file_entrypoint(files, entrypoint, "crew.toml line 2", python)


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [
        ("main.py", True),
        ("a/flow.yaml", True),
        ("flow.yml", True),
        ("crew.json", True),
        ("crew.jsonc", True),
        ("main.py:f", False),
        ("main", False),
        ("main.txt", False),
    ],
)
def test_file_is_distinguished_from_an_object(entrypoint: str, expected: bool) -> None:
    assert is_file_entrypoint(entrypoint) is expected


@pytest.mark.parametrize(
    ("entrypoint", "path"),
    [
        ("./main.py", "main.py"),
        ("a/../main.py", "main.py"),
        ("a//flow.yaml", "a/flow.yaml"),
        ("asks.py", "asks.py"),
        ("calls.py", "calls.py"),
        ("newer.py", "newer.py"),
    ],
)
def test_file_that_does_something_is_accepted(entrypoint: str, path: str) -> None:
    assert check(entrypoint) == path


FORBIDDEN = "Rename it, or deploy its directory: a path has only ASCII letters, digits, spaces and _-.,()&+."
RELATIVE = 'Write it relative to the configuration, for example "main.py".'
BELOW = "which is not a path below the source's directory"


@pytest.mark.parametrize(
    ("entrypoint", "reason", "message", "hint"),
    [
        ("mian.py", "EntrypointNotFound", f"mian.py (crew.toml line 2) not found; such files: {LISTED}",
         "Did you mean main.py?"),
        ("nmes.py", "EntrypointNotFound", f"nmes.py (crew.toml line 2) not found; such files: {LISTED}",
         "Correct the path."),
        ("newr.py", "EntrypointNotFound", f"newr.py (crew.toml line 2) not found; such files: {LISTED}",
         "Did you mean newer.py?"),
        ("flow.yaml", "EntrypointNotFound", "flow.yaml (crew.toml line 2) not found; such files: a/flow.yaml",
         "Did you mean a/flow.yaml?"),
        ("none.yml", "EntrypointNotFound", "none.yml (crew.toml line 2) not found; such files: none",
         "Correct the path."),
        ("../main.py", "ConfigInvalid", f"crew.toml line 2 is '../main.py', {BELOW}", RELATIVE),
        ("/main.py", "ConfigInvalid", f"crew.toml line 2 is '/main.py', {BELOW}", RELATIVE),
        ("a;b.py", "ConfigInvalid", "crew.toml line 2 is 'a;b.py', a path with ';'", FORBIDDEN),
        ("t\u00e9.py", "ConfigInvalid", "crew.toml line 2 is 't\u00e9.py', a path with '\u00e9'", FORBIDDEN),
    ],
)  # fmt: skip
def test_path_that_is_no_file_of_the_source_is_refused(
    entrypoint: str, reason: str, message: str, hint: str
) -> None:
    with pytest.raises(PlanError) as raised:
        check(entrypoint)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (reason, message, hint)


@pytest.mark.parametrize(
    ("entrypoint", "hint"),
    [
        ("names.py", "Name one of them as module:object, or call it in that file."),
        ("more.py", "Name one of them as module:object, or call it in that file."),
        ("own_line.py", "Name one of them as module:object, or call it in that file."),
        ("src/tide/agent.py", "Name its agent: tide.agent:root_agent."),
        ("typer_line.py", "Name its command line: typer_line:app."),
        ("src/click_line.py", "Name its command line: click_line:run."),
    ],
)
def test_script_that_only_defines_names_is_answered_with_its_object(entrypoint: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        check(entrypoint)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "EntrypointNotFound",
        f"{entrypoint} (crew.toml line 2) does nothing when it is run: it only defines names",
        hint,
    )


def test_syntax_error_of_a_script_has_file_and_line() -> None:
    with pytest.raises(PlanError, match=r"EntrypointNotFound: broken\.py line 1: syntax error"):
        check("broken.py", "3.11")
