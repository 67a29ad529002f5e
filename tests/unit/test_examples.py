"""The examples: what the plan makes of them, and that what they need is pinned."""

import re
import tomllib
from pathlib import Path

import pytest

from plan.make import make_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = {
    "crewai": ("crewai", "harbour.crew:Harbour"),
    "crewai-flow": ("crewai", "passage.main:PassageFlow"),
    "langgraph": ("langgraph", "agent.graph:graph"),
    "openai": ("python", "main:kickoff"),
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


def test_both_crews_of_crewai_need_the_same_packages():
    """So that one project's dependency image serves both."""
    declared = [
        tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text()) for name in ("crewai", "crewai-flow")
    ]
    assert declared[0]["project"]["dependencies"] == declared[1]["project"]["dependencies"]
