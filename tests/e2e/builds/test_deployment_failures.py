"""Deployments that cannot be planned or built: every reason, with message, next step and log."""

import secrets

import pytest

from tests.daily import daily
from tests.e2e.conftest import BuiltCrew
from tests.e2e.failures import failed

MAIN = {"main.py": "def kickoff(inputs):\n    return inputs\n"}
SETUP = """
from setuptools import setup
{before}
setup(name="own", version="1", package_dir={{"": "lib"}}, packages=["own"])
"""


def package(before: str) -> dict[str, str]:
    """A tree whose entrypoint is in a package that must be installed."""
    return {
        "crew.toml": '[deployment]\nentrypoint = "own.crew:kickoff"\n',
        "setup.py": SETUP.format(before=before),
        "lib/own/__init__.py": "",
        "lib/own/crew.py": MAIN["main.py"],
    }


PLANS = {
    "broken toml": ({"crew.toml": "[deployment\n"}, "ConfigInvalid", ["crew.toml"]),
    "misspelt": (
        {"crew.toml": '[deployment]\nentrypiont = "main:kickoff"\n'},
        "ConfigInvalid",
        ["entrypiont", "entrypoint"],
    ),
    "python": ({"crew.toml": '[deployment]\npython = "2.7"\n'}, "ConfigInvalid", ["2.7", "3.11"]),
    "no function": (
        {"crew.toml": '[deployment]\nentrypoint = "main:start"\n'},
        "EntrypointNotFound",
        ["start", "kickoff"],
    ),
    "no module": (
        {"crew.toml": '[deployment]\nentrypoint = "crew:kickoff"\n'},
        "EntrypointNotFound",
        ["crew.py"],
    ),
    "syntax": ({"main.py": "def kickoff(:\n"}, "EntrypointNotFound", ["main.py"]),
    "framework": (
        {"crew.toml": '[deployment]\nframework = "autogen"\n'},
        "UnsupportedFramework",
        ["autogen", "langgraph"],
    ),
}


@pytest.mark.parametrize("name", daily(PLANS, ("misspelt", "no function", "framework")))
async def test_failed_plan(testbed, crew, unpushable, unpullable, name):
    """Start the two early that take several attempts: test_slow_failures.py waits for their end.

    Slow: the first builds the crew and both registries.
    """
    files, reason, words = PLANS[name]
    deployment = await crew.upload_project.deploy({**MAIN, **files}, message="Break it")
    await failed(crew.upload_project, deployment, reason, words)
    assert (await testbed.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


@pytest.mark.nightly
async def test_unsupported_language(crew):
    """The error names the language.

    Slow: waits in the build queue behind the builds of other tests.
    """
    deployment = await crew.upload_project.deploy({"package.json": "{}", "index.js": ""})
    await failed(crew.upload_project, deployment, "UnsupportedFramework", ["JavaScript"])


async def test_runs_of_a_failed_deployment(testbed, upload_projects):
    upload_project = await upload_projects()
    deployment = await upload_project.deploy({"crew.toml": "[deployment\n"})
    await failed(upload_project, deployment, "ConfigInvalid", [])
    refused = await testbed.call("POST", "/v1/runs", {"deployment": deployment})
    assert (refused.status, refused.body["error"]["code"]) == (409, "conflict")
    idle = await testbed.call("POST", "/v1/runs", {"deployment": upload_project.project})
    assert (idle.status, idle.body["error"]["code"]) == (409, "conflict")

    run = f"run-{secrets.token_hex(6)}"
    await testbed.apply("Run", run, {"deployment": deployment.replace("_", "-", 1)}, "create")
    await testbed.kubectl("wait", f"crun/{run}", "--for=condition=Complete", "--timeout=240s")
    assert (await testbed.object("runs", run))["status"]["error"]["reason"] == "DeploymentFailed"
    # The API returns objects of kubectl after their watch event.
    shown = await BuiltCrew(testbed, upload_project.project, deployment).wait_finished(f"run_{run[4:]}")
    events = await testbed.events(shown["id"])
    assert [message.event for message in events] == ["run.failed"]
    assert events[0].data["error"]["reason"] == "DeploymentFailed"


BUILDS = {
    "no such package": (
        {**MAIN, "requirements.txt": "crewyard-no-such-package==9.9\n"},
        "DependencyResolution",
        ["crewyard-no-such-package"],
        "No solution found",
    ),
    "own package fails": (
        package('raise SystemExit("the tide table is missing")'),
        "BuildFailed",
        ["tide table"],
        "the tide table is missing",
    ),
}


@pytest.mark.parametrize("name", daily(BUILDS, ("own package fails",)))
async def test_failed_build(testbed, crew, name):
    """Slow: a whole dependency build up to its failure."""
    files, reason, words, line = BUILDS[name]
    deployment = await crew.upload_project.deploy(files)
    await failed(crew.upload_project, deployment, reason, words)
    shown = await crew.upload_project.object(deployment)
    assert line in shown["status"]["error"]["log"]
    # The log outlives the pods.
    names = [pod["metadata"]["name"] for pod in await crew.upload_project.pods(deployment)]
    await testbed.kubectl("delete", "pod", *names, "--wait=true")
    assert line in await crew.upload_project.log(deployment)
    assert (await testbed.get(f"/v1/deployments/{deployment}"))["error"]["reason"] == reason
    assert (await testbed.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


@pytest.mark.nightly
async def test_build_timeout(upload_projects):
    """Slow: a build until its timeout."""
    upload_project = await upload_projects(build={"timeout": "15s"})
    deployment = await upload_project.deploy(
        package("import time; print('slowly', flush=True); time.sleep(300)")
    )
    await failed(upload_project, deployment, "BuildTimeout", ["spec.build.timeout"])
    shown = await upload_project.pods(deployment)
    assert [pod["status"]["phase"] for pod in shown if pod["status"]["phase"] == "Running"] == []


@pytest.mark.nightly
async def test_build_out_of_memory(upload_projects):
    """Slow: a build until its memory ends."""
    upload_project = await upload_projects(build={"resources": {"limits": {"memory": "768Mi"}}})
    deployment = await upload_project.deploy(package("held = [bytearray(64 << 20) for _ in range(64)]"))
    await failed(upload_project, deployment, "BuildOutOfMemory", ["limits.memory"])
