"""Deployments that cannot be planned or built: every reason, with message, next step and log."""

import secrets

import pytest

from tests.e2e.conftest import Crew
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


@pytest.mark.parametrize("name", PLANS)
async def test_a_plan_that_cannot_be_made(yard, crew, name):
    files, reason, words = PLANS[name]
    deployment = await crew.workshop.deploy({**MAIN, **files}, message="Break it")
    await failed(crew.workshop, deployment, reason, words)
    assert (await yard.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


async def test_another_language(crew, unpushable):
    deployment = await crew.workshop.deploy({"package.json": "{}", "index.js": ""})
    await failed(crew.workshop, deployment, "UnsupportedFramework", ["JavaScript"])


async def test_what_a_failed_deployment_means_for_runs(yard, workshops):
    shop = await workshops()
    deployment = await shop.deploy({"crew.toml": "[deployment\n"})
    await failed(shop, deployment, "ConfigInvalid", [])
    refused = await yard.call("POST", "/v1/runs", {"deployment": deployment})
    assert (refused.status, refused.body["error"]["code"]) == (409, "conflict")
    idle = await yard.call("POST", "/v1/runs", {"deployment": shop.project})
    assert (idle.status, idle.body["error"]["code"]) == (409, "conflict")

    run = f"run-{secrets.token_hex(6)}"
    await yard.apply("Run", run, {"deployment": deployment.replace("_", "-", 1)}, "create")
    await yard.kubectl("wait", f"crun/{run}", "--for=condition=Complete", "--timeout=120s")
    assert (await yard.object("runs", run))["status"]["error"]["reason"] == "DeploymentFailed"
    # What kubectl made is known to the API once its watch has told of it.
    shown = await Crew(yard, shop.project, deployment).finished(f"run_{run[4:]}")
    events = await yard.events(shown["id"])
    assert [message.event for message in events] == ["run.failed"]
    assert events[0].data["error"]["reason"] == "DeploymentFailed"


BUILDS = {
    "no such package": (
        {**MAIN, "requirements.txt": "crewyard-no-such-package==9.9\n"},
        "DependencyResolution",
        ["crewyard-no-such-package"],
        "No matching distribution",
    ),
    "own package fails": (
        package('raise SystemExit("the tide table is missing")'),
        "BuildFailed",
        ["tide table"],
        "the tide table is missing",
    ),
}


@pytest.mark.parametrize("name", BUILDS)
async def test_a_build_that_fails(yard, crew, name):
    files, reason, words, line = BUILDS[name]
    deployment = await crew.workshop.deploy(files)
    await failed(crew.workshop, deployment, reason, words)
    shown = await crew.workshop.object(deployment)
    assert line in shown["status"]["error"]["log"]
    # The log outlives the pods.
    names = [pod["metadata"]["name"] for pod in await crew.workshop.pods(deployment)]
    await yard.kubectl("delete", "pod", *names, "--wait=true")
    assert line in await crew.workshop.log(deployment)
    assert (await yard.get(f"/v1/deployments/{deployment}"))["error"]["reason"] == reason
    assert (await yard.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


async def test_a_build_that_takes_too_long(workshops):
    shop = await workshops(build={"timeout": "15s"})
    deployment = await shop.deploy(package("import time; print('slowly', flush=True); time.sleep(300)"))
    await failed(shop, deployment, "BuildTimeout", ["spec.build.timeout"])
    shown = await shop.pods(deployment)
    assert [pod["status"]["phase"] for pod in shown if pod["status"]["phase"] == "Running"] == []


async def test_a_build_that_needs_too_much_memory(workshops):
    shop = await workshops(build={"resources": {"limits": {"memory": "768Mi"}}})
    deployment = await shop.deploy(package("held = [bytearray(64 << 20) for _ in range(64)]"))
    await failed(shop, deployment, "BuildOutOfMemory", ["limits.memory"])
