"""Crews for another Python than the installation's first one."""

import pytest

from tests.e2e.conftest import BuiltCrew

pytestmark = pytest.mark.nightly

CREW = """\
import sys

import idna


def kickoff(inputs):
    return [*sys.version_info[:2], idna.__version__]
"""
PROJECT = """\
[project]
name = "tide"
version = "1"
requires-python = ">=3.12"
dependencies = ["idna==3.10"]

[tool.crewyard.deployment]
entrypoint = "tide:kickoff"
"""


async def test_a_crew_gets_the_first_python_that_its_project_allows(crew):
    """Slow: builds a crew with dependencies, and runs it."""
    files = {"pyproject.toml": PROJECT, "tide.py": CREW}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, deployment).run("tide:kickoff")
    major, minor, package = run["output"]
    assert (major, package) == (3, "3.10") and minor in (12, 13), run
