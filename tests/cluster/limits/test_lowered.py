"""An installation that lowers its limits: queue, log, artifacts, inputs and times, with real pods."""

import asyncio
import json
import secrets

from crds.kinds import POD, PROJECT, RUN
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS
from crds.names import id_of, name_of
from tests.campaign.testbed import open_testbed

NAME = "CREWYARD_LIMITS"
LIMITS = {
    "queue": 2,
    "log_lines": 100,
    "artifacts": 3,
    "run_seconds": 1234,
    "run_max_seconds": 3600,
    "input_bytes": 20_000,
    "input_object_bytes": 4096,
}
SECONDS = 180.0
"""In which what takes a second must have come about, on a machine that does much else."""


async def post(found, **script):
    body = {"deployment": found.project, "input": {"ledger": found.ledger.url, **script}}
    return await found.call("POST", "/v1/runs", body)


async def posted(found, **script):
    status, answer = await post(found, **script)
    assert status == 201, answer
    return answer["data"]["id"]


async def until(found, run, *statuses):
    async with asyncio.timeout(SECONDS):
        while True:
            shown = await found.ask("GET", f"/v1/runs/{run}")
            if shown["status"] in statuses:
                return shown
            await asyncio.sleep(0.2)


async def until_known(found, run):
    """The API knows what kubectl made once its watch has told of it."""
    async with asyncio.timeout(SECONDS):
        while (await found.call("GET", f"/v1/runs/{run}"))[0] == 404:
            await asyncio.sleep(0.2)


async def log(found, run):
    text = await found.ask("GET", f"/v1/runs/{run}/logs")
    return text.decode().splitlines()


async def create(found, spec):
    """A Run as kubectl makes one."""
    name = f"run-{secrets.token_hex(6)}"
    await found.kube.create(RUN, {"metadata": {"name": name}, "spec": {"project": found.project, **spec}})
    return name


# Its steps, each in the time that it has, come to more than the usual limit of a test.
async def test_lowered_limits_apply_to_runs(tmp_path):
    async with open_testbed(tmp_path, settings={NAME: json.dumps(LIMITS)}, concurrency=1) as found:
        await a_queue_of_two_then_a_log_and_files_that_are_cut(found)
        await requests_and_objects_that_are_refused(found)
        await a_start_that_is_given_up(found)


async def a_queue_of_two_then_a_log_and_files_that_are_cut(found):
    first = await posted(found, sleep=3600)
    await until(found, first, "running")
    talker = await posted(found, exit="counts", count=1000)
    keeper = await posted(found, exit="keeps", count=5, size=10)
    status, answer = await post(found)
    assert (status, answer["error"]["code"]) == (429, "queue_full"), answer
    assert answer["error"]["details"] == {"project": found.project, "limit": 2}
    pod = await found.kube.get(POD, name_of(first))
    assert (
        pod is not None and pod["spec"]["activeDeadlineSeconds"] == 300 + 1234 + GRACE_SECONDS + FLUSH_SECONDS
    )

    await found.ask("POST", f"/v1/runs/{first}/cancel")
    assert (await until(found, talker, "succeeded", "failed"))["status"] == "succeeded"
    lines = await log(found, talker)
    assert lines[:100] == [str(number) for number in range(100)]
    assert [line for line in lines[100:] if "900 log lines were dropped" in line] == lines[100:] != []

    assert (await until(found, keeper, "succeeded", "failed"))["status"] == "succeeded"
    kept = await found.ask("GET", f"/v1/runs/{keeper}/artifacts")
    assert [one["size"] for one in kept] == [10] * 3
    assert sum("the limit of a run is 3 files" in line for line in await log(found, keeper)) == 2


async def requests_and_objects_that_are_refused(found):
    status, answer = await post(found, text="x" * 20_000)
    assert (status, answer["error"]["details"]) == (413, {"field": "input", "limit_bytes": 20_000})
    body = {"deployment": found.project, "timeout": "61m"}
    status, answer = await found.call("POST", "/v1/runs", body)
    assert (status, "at most 1h" in answer["error"]["message"]) == (400, True)

    name = await create(found, {"input": {"ledger": found.ledger.url, "text": "x" * 5000}})
    await until_known(found, id_of(name))
    shown = await until(found, id_of(name), "succeeded", "failed")
    assert (shown["status"], shown["error"]["reason"]) == ("failed", "InputTooLarge")
    assert "more than 4 KiB" in shown["error"]["message"]
    assert not [one for one in found.ledger.entries() if one.run == name]


async def a_start_that_is_given_up(found):
    """The facade is away: a pod waits for it as long as it is told to, and no longer."""
    found.controller.settings[NAME] = json.dumps({**LIMITS, "start_seconds": 5})
    await found.controller.kill()
    await found.api.kill()
    await found.controller.start()
    assert await found.kube.get(PROJECT, found.project)
    name = await create(found, {"input": {"ledger": found.ledger.url}})
    async with asyncio.timeout(SECONDS):
        while True:
            raw = await found.kube.get(RUN, name)
            if raw and raw["status"].get("error"):
                break
            await asyncio.sleep(0.2)
    assert raw["status"]["error"]["reason"] == "StartTimeout", raw["status"]
    pod = await found.kube.get(POD, name)
    assert pod is None or pod["spec"]["activeDeadlineSeconds"] == 5 + 1234 + GRACE_SECONDS + FLUSH_SECONDS
    assert not [one for one in found.ledger.entries() if one.run == name]
