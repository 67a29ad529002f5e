"""Runs that ask a person: answers by API and kubectl, expiry, cancellation, restarts."""

import asyncio
import json

import aiohttp
import pytest

from tests.e2e.testbed import eventually


async def asked(testbed, crew, entrypoint, count=1):
    """Start a run and wait for its questions; return its id and what GET shows."""
    run = await crew.start(f"questions:{entrypoint}")
    shown = await eventually(
        lambda: testbed.get(f"/v1/runs/{run}"),
        lambda seen: len(seen.get("input_requests", ())) == count,
        600,
    )
    return run, shown


async def answer(testbed, run, value, request="q1"):
    return await testbed.call("POST", f"/v1/runs/{run}/inputs/{request}", {"value": value})


async def condition(testbed, run):
    """Return the condition WaitingForInput of a Run; None without."""
    item = await testbed.object("runs", run.replace("_", "-", 1))
    return next((one for one in item["status"]["conditions"] if one["type"] == "WaitingForInput"), None)


async def test_a_crew_gets_the_first_answer_that_fits(testbed, crew):
    run, shown = await asked(testbed, crew, "asks")
    assert shown["waiting"]["reason"] == "WaitingForInput"
    assert shown["input_requests"][0]["prompt"] == "Which way?"
    await eventually(lambda: condition(testbed, run), lambda seen: seen is not None, 300)
    refused = await answer(testbed, run, {"way": 1})
    assert (refused.status, refused.body["error"]["details"]["field"]) == (400, "value.way")
    answers = await asyncio.gather(*(answer(testbed, run, {"way": way}) for way in ("north", "south")))
    assert sorted(one.status for one in answers) == [200, 409]
    done = await crew.wait_finished(run)
    assert done["status"] == "succeeded"
    assert done["output"] == {"way": "north" if answers[0].status == 200 else "south"}
    events = [event for event in await testbed.events(run) if event.event.startswith("input.")]
    assert [event.event for event in events] == ["input.requested", "input.received"]
    assert events[1].data["request_id"] == "q1" and events[1].data["by"]
    assert (await answer(testbed, run, {"way": "late"})).status == 409
    item = await testbed.object("runs", run.replace("_", "-", 1))
    assert item["status"]["inputRequests"] == [] and await condition(testbed, run) is None


async def test_kubectl_answers_and_its_wrong_answer_is_in_the_condition(testbed, crew):
    run, _ = await asked(testbed, crew, "asks_twice", 2)
    wrong = {"request": "q2", "value": "c"}
    right = [{"request": "q2", "value": "b"}, {"request": "q1", "value": {"any": 1}}]

    async def patch(answers):
        body = json.dumps({"spec": {"answers": answers}})
        name = f"crun/{run.replace('_', '-', 1)}"
        return await testbed.kubectl("patch", name, "--type", "merge", "-p", body, check=False)

    await patch([wrong])

    async def refusals():
        item = await testbed.object("runs", run.replace("_", "-", 1))
        return [one.get("refusal") for one in item["status"]["inputRequests"]]

    await eventually(refusals, lambda seen: any(seen), 300)
    await patch([wrong, *right])
    done = await crew.wait_finished(run)
    assert (done["status"], done["output"]) == ("succeeded", [{"any": 1}, "b"])


async def test_input_and_an_answer_of_1_mib(testbed, crew):
    reads, _ = await asked(testbed, crew, "reads")
    assert (await answer(testbed, reads, "north")).status == 200
    measures, _ = await asked(testbed, crew, "measures")
    size = 1024 * 1024
    assert (await answer(testbed, measures, "x" * size)).status == 413
    assert (await answer(testbed, measures, "x" * (size - 2))).status == 200
    assert (await crew.wait_finished(reads))["output"] == "north"
    assert (await crew.wait_finished(measures))["output"] == size


async def test_a_run_that_waits_can_be_canceled(testbed, crew):
    run, _ = await asked(testbed, crew, "asks")
    await testbed.call("POST", f"/v1/runs/{run}/cancel", {})
    done = await crew.wait_finished(run)
    assert done["status"] == "canceled" and "input_requests" not in done
    assert (await answer(testbed, run, {"way": "late"})).status == 409


async def test_waiting_has_a_limit_of_its_own(testbed, crew):
    """Slow: the crew waits for longer than its timeout, which is long enough to start on a busy machine."""
    await testbed.call("PATCH", f"/v1/projects/{crew.project}", {"run": {"ask_timeout": "15s"}})
    try:
        run = await crew.start("questions:asks", timeout="10s")
        done = await crew.wait_finished(run)
    finally:
        await testbed.call("PATCH", f"/v1/projects/{crew.project}", {"run": {"ask_timeout": None}})
    assert (done["status"], done["error"]["reason"]) == ("failed", "InputTimeout")
    assert done["duration_ms"] >= 14_900


@pytest.mark.exclusive
@pytest.mark.nightly
@pytest.mark.parametrize("component", ["api", "controller"])
async def test_a_restart_while_a_run_waits_loses_nothing(testbed, crew, component):
    run, _ = await asked(testbed, crew, "asks")
    selector = ("pod", "-n", "crewyard-system", "-l", f"app.kubernetes.io/component={component}")
    ready = "jsonpath={range .items[?(@.status.containerStatuses[0].ready)]}{.metadata.name} {end}"
    before = (await testbed.kubectl("get", *selector, "-o", ready)).split()
    await testbed.kubectl("delete", *selector, "--grace-period=0", "--force", "--wait=false")
    await eventually(
        lambda: testbed.kubectl("get", *selector, "-o", ready),
        lambda seen: set(seen.split()) - {*before},
        600,
    )

    async def accepted():
        try:
            return (await answer(testbed, run, {"way": "north"})).status
        except (OSError, aiohttp.ClientError):
            return 503

    assert await eventually(accepted, lambda status: status in (200, 409), 600)
    done = await crew.wait_finished(run)
    assert (done["status"], done["output"]) == ("succeeded", {"way": "north"})
    item = await testbed.object("runs", run.replace("_", "-", 1))
    assert item["status"]["phase"] == "Succeeded" and item["status"]["inputRequests"] == []
