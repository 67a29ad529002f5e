"""Dependencies that requirements.txt does not have: those of a script, and those of the Project."""

import secrets

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.upload_project import UploadProject

pytestmark = pytest.mark.nightly
SCRIPT = """# /// script
# dependencies = ["iniconfig==2.1.0"]
# ///
import importlib.metadata, json, sys

print(json.dumps({"version": importlib.metadata.version("iniconfig"), "arguments": sys.argv[1:]}))
"""

CREW = """
from importlib.metadata import version

def kickoff():
    return {name: version(name) for name in ("iniconfig", "six")}
"""


async def test_inline_metadata_is_installed_and_args_are_given(crew):
    """Slow: Kaniko builds a dependency image."""
    files = {"ask.py": SCRIPT, "requirements.txt": "iniconfig==2.0.0\n"}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={}, crew="ask.py")
    body = {"deployment": deployment, "input": {"args": ["tides", 3]}}
    started = await crew.testbed.post("/v1/runs", body)
    run = await BuiltCrew(crew.testbed, crew.project, deployment).wait_finished(started["id"])
    assert run.get("output") == {"version": "2.1.0", "arguments": ["tides", "3"]}, run.get("error")


async def test_packages_of_the_project_come_after_the_declared_ones(testbed):
    """Slow: Kaniko builds a dependency image."""
    project = f"e2e-added-{secrets.token_hex(4)}"
    build = {"requirements": ["six==1.17.0", "iniconfig==2.1.0"]}
    await testbed.post("/v1/projects", {"name": project, "build": build})
    try:
        files = {"main.py": CREW, "requirements.txt": "iniconfig==2.0.0\n"}
        deployment = await UploadProject(testbed, project).deploy_and_wait(files)
        run = await BuiltCrew(testbed, project, deployment).run("kickoff")
        assert run.get("output") == {"iniconfig": "2.1.0", "six": "1.17.0"}, run.get("error")
    finally:
        await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")
