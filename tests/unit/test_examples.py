"""The examples: what the plan makes of them, and that what they need is pinned."""

import re
from pathlib import Path

import pytest

from plan.make import make_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = {
    "crewai": ("crewai", "harbour.crew:Harbour"),
    "langgraph": ("langgraph", "agent.graph:graph"),
    "python": ("python", "main:kickoff"),
}


def test_there_are_no_others():
    assert {path.name for path in EXAMPLES.iterdir()} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_an_example_is_planned_and_pinned(name):
    root = EXAMPLES / name
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    planned = make_plan(files, None, ["3.11", "3.12"])
    assert (planned.plan.framework, planned.plan.entrypoint) == PLANS[name]
    assert [line for line in planned.declaration.lines if not re.fullmatch(r"[a-z-]+==[0-9.]+", line)] == []
    assert planned.declaration.projects == ()
    assert (root / "README.md").read_text().count("python -") == 1
