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


def test_every_crew_among_the_examples_is_known_here():
    crews = {
        path.parent.name for name in ("crew.toml", "pyproject.toml") for path in EXAMPLES.glob(f"*/{name}")
    }
    assert crews == set(PLANS)


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
