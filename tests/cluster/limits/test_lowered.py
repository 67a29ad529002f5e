"""Lowered limits of an installation (queue, log, artifacts, inputs, times), with real pods."""

import asyncio
import json
import secrets

from crds.kinds import POD, PROJECT, RUN
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS
from crds.names import id_of, name_of
from tests.campaign.testbed import open_testbed
from tests.e2e.unavailable import repeat_unavailable

SETTING = "CREWYARD_LIMITS"
LIMITS = {
    "queue": 2,
    "log_lines": 100,
    "artifacts": 3,
    "run_seconds": 1234,
    "ask_seconds": 3600,
    "run_max_seconds": 3600,
    "input_bytes": 20_000,
    "input_object_bytes": 4096,
}
TIMEOUT_SECONDS = 180.0
"""Limit for steps that take a second on an idle machine."""


async def post(testbed, **script):
    body = {"deployment": testbed.project, "input": {"ledger": testbed.ledger.url, **script}}
    return await call(testbed, "POST", "/v1/runs", body)


async def call(testbed, method, path, body=None):
    """Return status and body of a call, repeated after a 503."""
    return await repeat_unavailable(
        lambda: testbed.call(method, path, body), lambda response: (response[0], {"Retry-After": "1"})
    )


async def create_run(testbed, **script):
    status, answer = await post(testbed, **script)
    assert status == 201, answer
    return answer["data"]["id"]


async def until(testbed, run, *statuses):
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            run_view = await testbed.ask("GET", f"/v1/runs/{run}")
            if run_view["status"] in statuses:
                return run_view
            await asyncio.sleep(0.2)


async def until_visible(testbed, run):
    """Wait until the API's watch has reported a Run created with kubectl."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while (await call(testbed, "GET", f"/v1/runs/{run}"))[0] == 404:
            await asyncio.sleep(0.2)


async def log(testbed, run):
    text = await testbed.ask("GET", f"/v1/runs/{run}/logs")
    return text.decode().splitlines()


async def create(testbed, spec):
    """Create a Run as kubectl does."""
    name = f"run-{secrets.token_hex(6)}"
    await testbed.kube.create(RUN, {"metadata": {"name": name}, "spec": {"project": testbed.project, **spec}})
    return name


# The steps together exceed the usual timeout of a test.
async def test_lowered_limits_apply_to_runs(tmp_path):
    """Slow: starts API server and controller, and runs pods against each limit."""
    async with open_testbed(tmp_path, settings={SETTING: json.dumps(LIMITS)}, concurrency=1) as testbed:
        await a_queue_of_two_then_a_log_and_files_that_are_cut(testbed)
        await requests_and_objects_that_are_refused(testbed)
        await a_start_that_is_given_up(testbed)


async def a_queue_of_two_then_a_log_and_files_that_are_cut(testbed):
    first = await create_run(testbed, sleep=3600)
    await until(testbed, first, "running")
    talker = await create_run(testbed, exit="counts", count=1000)
    keeper = await create_run(testbed, exit="keeps", count=5, size=10)
    status, answer = await post(testbed)
    assert (status, answer["error"]["code"]) == (429, "queue_full"), answer
    assert answer["error"]["details"] == {"project": testbed.project, "limit": 2}
    pod = await testbed.kube.get(POD, name_of(first))
    assert pod is not None
    # Start, run and ask timeouts.
    assert pod["spec"]["activeDeadlineSeconds"] == 630 + 1234 + 3600 + GRACE_SECONDS + FLUSH_SECONDS

    await testbed.ask("POST", f"/v1/runs/{first}/cancel")
    assert (await until(testbed, talker, "succeeded", "failed"))["status"] == "succeeded"
    lines = await log(testbed, talker)
    assert lines[:100] == [str(number) for number in range(100)]
    assert [line for line in lines[100:] if "900 log lines were dropped" in line] == lines[100:] != []

    assert (await until(testbed, keeper, "succeeded", "failed"))["status"] == "succeeded"
    kept = await testbed.ask("GET", f"/v1/runs/{keeper}/artifacts")
    assert [one["size"] for one in kept] == [10] * 3
    assert sum("the limit of a run is 3 files" in line for line in await log(testbed, keeper)) == 2


async def requests_and_objects_that_are_refused(testbed):
    status, answer = await post(testbed, text="x" * 20_000)
    assert (status, answer["error"]["details"]) == (413, {"field": "input", "limit_bytes": 20_000})
    body = {"deployment": testbed.project, "timeout": "61m"}
    status, answer = await call(testbed, "POST", "/v1/runs", body)
    assert (status, "at most 1h" in answer["error"]["message"]) == (400, True)

    name = await create(testbed, {"input": {"ledger": testbed.ledger.url, "text": "x" * 5000}})
    await until_visible(testbed, id_of(name))
    run_view = await until(testbed, id_of(name), "succeeded", "failed")
    assert (run_view["status"], run_view["error"]["reason"]) == ("failed", "InputTooLarge")
    assert "spec.input is larger than 4 KiB" in run_view["error"]["message"]
    assert not [entry for entry in testbed.ledger.entries() if entry.run == name]


async def a_start_that_is_given_up(testbed):
    """Stop the API server: a pod waits for it until its start timeout."""
    testbed.controller.settings[SETTING] = json.dumps({**LIMITS, "start_seconds": 5})
    await testbed.controller.kill()
    await testbed.api.kill()
    await testbed.controller.start()
    assert await testbed.kube.get(PROJECT, testbed.project)
    name = await create(testbed, {"input": {"ledger": testbed.ledger.url}})
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            raw = await testbed.kube.get(RUN, name)
            if raw and raw["status"].get("error"):
                break
            await asyncio.sleep(0.2)
    assert raw["status"]["error"]["reason"] == "StartTimeout", raw["status"]
    pod = await testbed.kube.get(POD, name)
    assert (
        pod is None
        or pod["spec"]["activeDeadlineSeconds"] == 125 + 1234 + 3600 + GRACE_SECONDS + FLUSH_SECONDS
    )
    assert not [entry for entry in testbed.ledger.entries() if entry.run == name]
