"""Dependencies that requirements.txt does not have: of a script, of its lock, of the Project.

Also versions of a lock that the index has dropped.
"""

import hashlib
import secrets

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.demo import GIT_HOST
from tests.e2e.failures import failed
from tests.e2e.index import WheelIndex, wheel
from tests.e2e.upload_project import UploadProject
from tests.testbed.public_index import PUBLIC_INDEX

pytestmark = pytest.mark.nightly
SCRIPT = """# /// script
# dependencies = ["iniconfig==2.1.0"]
# ///
import importlib.metadata, json, sys

print(json.dumps({"version": importlib.metadata.version("iniconfig"), "arguments": sys.argv[1:]}))
"""

COMMAND = """# /// script
# dependencies = ["click>=8"]
# ///
import importlib.metadata
import json

import click

from .names import RIVER


@click.group()
def tides():
    pass


@tides.command()
@click.argument("hours", nargs=-1, type=int)
@click.option("--depth", type=float)
def ask(hours, depth):
    version = importlib.metadata.version("click")
    print(json.dumps({"version": version, "river": RIVER, "hours": hours, "depth": depth}))


if __name__ == "__main__":
    tides()
"""
# As `uv lock --script` writes it, with an older version than the newest one that the script allows.
COMMAND_LOCK = f"""version = 1
revision = 3
requires-python = ">=3.11"

[manifest]
requirements = [{{ name = "click", specifier = ">=8" }}]

[[package]]
name = "click"
version = "8.2.1"
source = {{ registry = "{PUBLIC_INDEX}" }}
wheels = [{{ hash = "sha256:61a3265b914e850b85317d0b3109c7f8cd35a670f963866005d6ef1d5175a12b" }}]
"""

CREW = """
from importlib.metadata import version

def kickoff():
    return {name: version(name) for name in ("iniconfig", "six")}
"""


async def test_inline_metadata_is_installed_and_args_are_given(crew):
    """Slow: it builds a dependency image."""
    files = {"ask.py": SCRIPT, "requirements.txt": "iniconfig==2.0.0\n"}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={}, crew="ask.py")
    body = {"deployment": deployment, "input": {"args": ["tides", 3]}}
    started = await crew.testbed.post("/v1/runs", body)
    run = await BuiltCrew(crew.testbed, crew.project, deployment).wait_finished(started["id"])
    assert run.get("output") == {"version": "2.1.0", "arguments": ["tides", "3"]}, run.get("error")


async def test_command_line_with_a_lock_that_imports_relatively(crew):
    """Slow: it builds a dependency image."""
    path = "src/tides/cli.py"
    files = {
        path: COMMAND,
        f"{path}.lock": COMMAND_LOCK,
        "src/tides/names.py": "RIVER = 'Severn'\n",
        "README.md": "Tides\n",
    }
    deployment = await crew.upload_project.deploy_and_wait(files, preview={}, crew=path)
    body = {"deployment": deployment, "input": {"args": ["ask", 6, 18, "--depth", 2.5]}}
    started = await crew.testbed.post("/v1/runs", body)
    run = await BuiltCrew(crew.testbed, crew.project, deployment).wait_finished(started["id"])
    expected = {"version": "8.2.1", "river": "Severn", "hours": [6, 18], "depth": 2.5}
    assert run.get("output") == expected, run.get("error")


DROPPED_PROJECT = """[project]
name = "pilots"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["harbour-pilot-dropped"]
"""
# As `uv lock` writes it.
DROPPED_LOCK = f"""version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "harbour-pilot-dropped"
version = "1.2"
source = {{{{ registry = "{PUBLIC_INDEX}" }}}}
wheels = [{{{{ url = "{{url}}", hash = "sha256:{{hash}}" }}}}]

[[package]]
name = "pilots"
version = "0.1"
source = {{{{ virtual = "." }}}}
dependencies = [{{{{ name = "harbour-pilot-dropped" }}}}]
"""


async def test_a_version_that_the_index_has_dropped_comes_from_the_lock(crew, host_address):
    """Slow: it builds two dependency images."""
    name, content = wheel("harbour_pilot_dropped", "1.2", "WORD = 'aboard'\n")
    code = "import harbour_pilot_dropped\n\n\ndef kickoff():\n    return harbour_pilot_dropped.WORD\n"
    with WheelIndex(host_address, "", "", {name: content}) as index:
        url = f"http://{GIT_HOST}:{index.port}/files/{name}"
        lock = DROPPED_LOCK.format(url=url, hash=hashlib.sha256(content).hexdigest())
        files = {"main.py": code, "pyproject.toml": DROPPED_PROJECT, "uv.lock": lock}
        deployment = await crew.upload_project.deploy_and_wait(files)
        assert "from the URLs in the lock" in await crew.upload_project.log(deployment)
        run = await BuiltCrew(crew.testbed, crew.project, deployment).run("kickoff")
        assert run.get("output") == "aboard", run.get("error")

        other = DROPPED_LOCK.format(url=url, hash="0" * 64)
        wrong = await crew.upload_project.deploy({**files, "uv.lock": other})
        await failed(crew.upload_project, wrong, "DependencyResolution", ["harbour-pilot-dropped==1.2"])


async def test_packages_of_the_project_come_after_the_declared_ones(testbed):
    """Slow: it builds a dependency image."""
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
