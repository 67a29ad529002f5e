"""Smoke runs of real builds, seen by API and command line."""

import pytest

from tests.e2e.testbed import eventually

TOML = '[deployment]\nsmoke = {input = {topic = "tides"}, timeout = "2m"}\n'
GOOD = {"main.py": "def kickoff(inputs):\n    return inputs['topic']\n", "crew.toml": TOML}
BAD = {"main.py": "def kickoff(inputs):\n    raise ValueError('no ' + inputs['topic'])\n", "crew.toml": TOML}


async def test_only_a_deployment_whose_smoke_run_succeeds_becomes_active(testbed, upload_projects):
    """Slow: two builds, each with a run."""
    upload_project = await upload_projects()
    good = await upload_project.deploy_and_wait(GOOD)
    shown = await testbed.get(f"/v1/deployments/{good}")
    assert shown["status"] == "active"
    run = await testbed.get(f"/v1/runs/{shown['smoke_run']}")
    assert (run["status"], run["output"], run["smoke"], run["deployment_id"]) == (
        "succeeded",
        "tides",
        True,
        good,
    )
    listed = await testbed.get(f"/v1/runs?project={upload_project.project}")
    assert [(item["id"], item["smoke"]) for item in listed] == [(run["id"], True)]

    bad = await upload_project.deploy(BAD)
    failed = await upload_project.wait_finished(bad)
    assert (failed["status"], failed["error"]["reason"]) == ("failed", "SmokeFailed")
    assert failed["smoke_run"].replace("_", "-", 1) in failed["error"]["message"]
    assert "ValueError: no tides" in failed["error"]["message"]
    assert (await testbed.get(f"/v1/deployments/{good}"))["status"] == "active"
    assert (await testbed.get(f"/v1/runs/{failed['smoke_run']}"))["error"]["reason"] == "CrewError"


@pytest.mark.nightly
async def test_canceling_a_deployment_cancels_its_running_smoke_run(testbed, upload_projects):
    upload_project = await upload_projects()
    slow = {**GOOD, "main.py": "import time\ndef kickoff(inputs):\n    time.sleep(110)\n"}
    deployment = await upload_project.deploy(slow)
    waiting = await eventually(
        lambda: testbed.get(f"/v1/deployments/{deployment}"), lambda seen: "smoke_run" in seen
    )
    assert (waiting["status"], waiting["waiting"]["reason"]) == ("building", "SmokeRunning")
    path = f"/v1/runs/{waiting['smoke_run']}"
    await eventually(lambda: testbed.call("GET", path), lambda seen: seen.status == 200)
    await eventually(lambda: testbed.get(path), lambda seen: seen["status"] == "running")
    await testbed.post(f"/v1/deployments/{deployment}/cancel", {})
    assert (await upload_project.wait_finished(deployment))["error"]["reason"] == "Canceled"
    await eventually(lambda: testbed.get(path), lambda seen: seen["status"] == "canceled")
