"""A script with dependencies of its own, in a directory that has others."""

import pytest

from tests.e2e.conftest import BuiltCrew

pytestmark = pytest.mark.nightly
SCRIPT = """# /// script
# dependencies = ["iniconfig==2.1.0"]
# ///
import importlib.metadata, json, sys

print(json.dumps({"version": importlib.metadata.version("iniconfig"), "arguments": sys.argv[1:]}))
"""


async def test_inline_metadata_is_installed_and_args_are_given(crew):
    """Slow: Kaniko builds a dependency image."""
    files = {"ask.py": SCRIPT, "requirements.txt": "iniconfig==2.0.0\n"}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={}, crew="ask.py")
    body = {"deployment": deployment, "input": {"args": ["tides", 3]}}
    started = await crew.testbed.post("/v1/runs", body)
    run = await BuiltCrew(crew.testbed, crew.project, deployment).wait_finished(started["id"])
    assert run.get("output") == {"version": "2.1.0", "arguments": ["tides", "3"]}, run.get("error")
