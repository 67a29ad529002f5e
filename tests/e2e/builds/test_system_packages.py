"""Debian packages and Dockerfile lines in the dependency image."""

import json

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.failures import failed

pytestmark = pytest.mark.nightly
WHICH = (
    "import os, shutil\n\n\ndef kickoff(inputs):\n    return [shutil.which('tree'), os.environ.get('TIDE')]\n"
)


async def test_debian_packages_are_in_the_image(crew):
    files = {"crew.toml": '[build]\npackages = ["tree"]\n', "main.py": WHICH}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, deployment).run("main:kickoff")
    assert run["output"] == ["/usr/bin/tree", None]


async def test_lines_of_langgraph_are_in_the_image(crew):
    """Slow: apt-get in a build with Kaniko."""
    lines = ["RUN apt-get update && apt-get install -y tree", "ENV TIDE=spring"]
    values = {"graphs": {"a": "./main.py:kickoff"}, "dependencies": ["."], "dockerfile_lines": lines}
    files = {"langgraph.json": json.dumps(values), "main.py": WHICH}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, deployment).run("main:kickoff")
    assert run["output"] == ["/usr/bin/tree", "spring"]


async def test_unknown_debian_package(crew):
    files = {"crew.toml": '[build]\npackages = ["no-such-tide-table"]\n', "main.py": WHICH}
    deployment = await crew.upload_project.deploy(files, preview={})
    await failed(crew.upload_project, deployment, "DependencyResolution", ["no-such-tide-table"])
