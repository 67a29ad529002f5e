"""Statuses that the apiserver refuses: an end is written anyway, others are reported and retried."""

import asyncio
from datetime import UTC, datetime

import pytest

from controller.process import ControllerProcess
from controller.run.outcome import failed
from controller.run.status import finished
from controller.runtime import event_map
from controller.runtime.decision import Decision
from crds import kinds
from crds.objects import Deployment, Run
from kube import errors
from tests.cluster.controller.conftest import WAIT_SECONDS, ControllerTestbed, settings

LONG = "é" * 5000
UGLY = "a\x00b\x1b[31m\x07" + "x" * 9000


@pytest.fixture
async def applier(kube):
    """The applier of Decisions, without a running controller."""
    process = ControllerProcess(kube, settings(kube.namespace, kopf=False))
    yield process.own.applier
    await process.shared.close()


@pytest.mark.parametrize("reason", ["CrewError", "no such word!", "\x00", LONG])
@pytest.mark.parametrize("message", [LONG, UGLY])
async def test_end_is_written_with_any_reason_and_message(kube, applier, reason, message):
    testbed = ControllerTestbed(kube, settings(kube.namespace))
    run = await testbed.run("run-a", project="demo")
    desired = finished(run, failed(reason, message), datetime.now(UTC))
    await applier.apply(kinds.RUN, run.raw, event_map.run("run-a"), Decision(status=desired))
    found = Run(await kube.get(kinds.RUN, "run-a"))
    assert found.phase == "Failed" and found.error["message"]
    assert {c["type"]: c["status"] for c in found.conditions}["Complete"] == "True"
    assert found.status["completionTime"]


async def test_refused_nonterminal_status_raises(kube, applier):
    testbed = ControllerTestbed(kube, settings(kube.namespace))
    deployment = Deployment((await testbed.deployment("dep-a")).raw)
    desired = {"phase": "Nonsense"}
    with pytest.raises(errors.Invalid):
        await applier.apply(
            kinds.DEPLOYMENT, deployment.raw, event_map.deployment("dep-a"), Decision(status=desired)
        )
    labels = {"kind": "deployments", "result": "retried"}
    registry = applier.metrics.registry
    assert registry.get_sample_value("crewyard_status_refused_total", labels) == 1
    recording = asyncio.create_task(applier.recorder.run())
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not (events := (await kube.list(kinds.EVENT)).items):
                await asyncio.sleep(0.1)
    finally:
        recording.cancel()
    assert [(event["reason"], event["involvedObject"]["name"]) for event in events] == [
        ("StatusRefused", "dep-a")
    ]


async def test_fallback_status_replaces_an_invalid_one(kube, applier):
    testbed = ControllerTestbed(kube, settings(kube.namespace))
    deployment = await testbed.deployment("dep-a")
    desired = {"plan": {"framework": "f" * 100}}
    fallback = {"phase": "Superseded"}
    decision = Decision(status=desired, fallback_status=fallback)
    await applier.apply(kinds.DEPLOYMENT, deployment.raw, event_map.deployment("dep-a"), decision)
    assert Deployment(await kube.get(kinds.DEPLOYMENT, "dep-a")).phase == "Superseded"


async def test_run_with_an_invalid_result_ends(testbed):
    await testbed.project()
    # The pod never starts, so it cannot end before the test writes its result.
    await testbed.deployment("dep-a", image="registry.crewyard.internal:5000/library/none:1")
    await testbed.run("run-a", deployment="dep-a")
    await testbed.claim("run-a")
    await testbed.report("run-a", "failed", reason="not one word!", message="\x00" * 4000)
    run = await testbed.wait_ended("run-a")
    assert run.phase == "Failed"
    # The reason is not a word and the message is not text; what is left of them is within the schema.
    assert run.error["reason"] == "CrewError"
    assert run.error["message"] == " " * len(run.error["message"]) != ""
