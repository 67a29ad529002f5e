"""What a server calls, as entrypoints to name in place of the server."""

import pytest

from plan.discovery.served import served_entrypoints

TEAM = """
from crewai import Crew
other = make()
crew = Crew()
limit = 3
def run(topic): return crew.kickoff()
async def ask(topic): ...
class Tides:
    def kickoff(self): ...
class Needs:
    def __init__(self, x): ...
    def kickoff(self): ...
"""


MODULES = ["team.py", "package/__init__.py"]
MODULES += [
    f"src/{path}.py" for path in ("tides/__init__", "tides/team", "tides/web/team", "in_/deep/__init__")
]


def served(code: str, path: str = "api.py", team: str = TEAM) -> tuple[str, ...]:
    tree = {path: code, **dict.fromkeys(MODULES, team)}
    return served_entrypoints({name: text.encode() for name, text in tree.items()}, path, "3.99")


@pytest.mark.parametrize(
    ("code", "objects"),
    [
        ("from team import run\nrun(1)", ["run"]),
        ("from team import run as go\nstart(go)", ["run"]),
        ("import team\nteam.run(1)\nteam.ask(1)\nteam.run(2)", ["run", "ask"]),
        ("import team as t\ndef f():\n    t.ask(t.run(1))", ["ask", "run"]),
        ("from team import crew\ncrew.kickoff()", ["crew"]),
        ("from team import other\nother.run().then()", ["other"]),
        ("from team import Tides\nTides().kickoff()", ["Tides"]),
        # Nothing that a run could call.
        ("from team import crew\ncrew.describe()\ncrew()", []),
        ("from team import limit\nlimit.run()", []),
        ("from team import run\nrun.delay(1)", []),
        ("from team import Needs\nNeeds(1).kickoff()", []),
        ("from team import run\nothers[run](1)\n", []),
        ("import team\nteam()", []),
        ("from os import run\nrun(1)\nlocal(2)", []),
        ("def broken(:", []),
        ("x = <syntax of a later Python>", []),
    ],
)
def test_called_objects_that_a_run_could_call_are_named(code: str, objects: list[str]) -> None:
    assert served(code) == tuple(f"team:{name}" for name in objects)


@pytest.mark.parametrize(
    ("path", "code", "entrypoints"),
    [
        ("src/tides/web/api.py", "from . import team\nteam.run(1)", ("tides.web.team:run",)),
        ("src/tides/web/api.py", "from .team import crew\ncrew.run()", ("tides.web.team:crew",)),
        ("src/tides/web/api.py", "from .. import team\nteam.run(1)", ("tides.team:run",)),
        ("src/tides/web/api.py", "from ..team import run\nrun(1)", ("tides.team:run",)),
        ("src/tides/web/api.py", "from team import run\nrun(1)", ("team:run",)),
        ("api.py", "from .team import run\nrun(1)", ("team:run",)),
        ("api.py", "import tides.team\ntides.team.run(1)", ("tides.team:run",)),
        ("api.py", "import tides.team as t\nt.run(1)", ("tides.team:run",)),
        ("api.py", "from tides import run\nrun(1)", ("tides:run",)),
        ("api.py", "from package import run\nrun(1)", ("package:run",)),
        ("api.py", "from tides import team\nstart(team)", ()),
        ("api.py", "from in_.deep import run\nrun(1)", ("in_.deep:run",)),
    ],
)
def test_modules_are_named_as_a_run_imports_them(path: str, code: str, entrypoints: tuple[str, ...]) -> None:
    assert served(code, path) == entrypoints


@pytest.mark.parametrize(
    "text",
    ["def run(topic): ...\n", "def broken(:", "from crewai import Crew\nx = <syntax of a later Python>"],
)
def test_module_that_makes_no_agent_or_cannot_be_read_is_not_named(text: str) -> None:
    assert served("from team import run\nrun(1)", team=text) == ()
