"""Pods that never start their crew: unschedulable, or with a process that never claims."""

import asyncio
import json
import os
import re
from dataclasses import replace

from crds import kinds
from tests.campaign import image, installed_service
from tests.cluster.controller.conftest import (
    FAST,
    WAIT_SECONDS,
    ControllerTestbed,
    condition,
    controller,
    settings,
)

LONG_TIMING = replace(FAST, unschedulable=600)
"""Longer than a busy machine needs to start a container, or to get the scheduler's message."""
SHORT_TIMING = replace(FAST, start_timeout=1, unschedulable=1)
"""Of the next controller: the time of a pod is over."""
NOT_CLAIMING = """import signal, sys, time

# The first process of a container does not hear of it otherwise, and would have the whole grace.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
time.sleep(600)
"""


async def wait_pod_deleted(testbed, name):
    async with asyncio.timeout(WAIT_SECONDS):
        while await testbed.kube.get(kinds.POD, name):
            await asyncio.sleep(0.2)


async def test_unschedulable_pod_fails_with_scheduler_message(kube):
    """The Run's error holds the scheduler's message."""
    config = settings(kube.namespace, timing=LONG_TIMING)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config):
        await testbed.project(pod={"nodeSelector": {"crewyard.dev/none": "here"}})
        await testbed.deployment("dep-a")
        await testbed.run("run-a", deployment="dep-a")
        waiting = await testbed.until(
            kinds.RUN, "run-a", lambda o: condition(o, "Succeeded") == ("Unknown", "Unschedulable")
        )
        assert "didn't match" in json.dumps(waiting["status"]["conditions"])
    async with controller(kube, replace(config, timing=SHORT_TIMING)):
        run = await testbed.wait_ended("run-a")
        assert (run.phase, run.error["reason"]) == ("Failed", "StartTimeout")
        words = r"no node could schedule the pod within 1 s: \d+/\d+ nodes are available: "
        words += r".*didn't match Pod's node"
        assert re.match(words, run.error["message"]), run.error
        assert "startTime" not in run.status
        await wait_pod_deleted(testbed, "run-a")


async def test_process_that_never_claims_times_out(kube, tmp_path):
    """Slow: starts a container, and waits for the margin of a running one after the start timeout."""
    installed = await installed_service.installed(kube)
    base = json.loads(installed["CREWYARD_BASE_IMAGES"])["3.11"]
    port = base.partition("/")[0].rpartition(":")[2]
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "__main__.py").write_text(NOT_CLAIMING)
    address = f"{os.environ['CREWYARD_HOST_ADDRESS']}:{port}"
    sleeping = await asyncio.to_thread(image.ensure, tmp_path, base, address)
    config = settings(kube.namespace, timing=LONG_TIMING)
    testbed = ControllerTestbed(kube, config)
    async with controller(kube, config):
        await testbed.project()
        await testbed.deployment("dep-a", image=sleeping)
        await testbed.run("run-a", deployment="dep-a")
        pod = await testbed.until(kinds.POD, "run-a", lambda o: o["status"].get("phase") == "Running")
        assert pod["status"]["containerStatuses"][0]["state"]["running"]
    async with controller(kube, replace(config, timing=SHORT_TIMING)):
        # The deadline is that of a runner that gives up, plus half a minute.
        run = await testbed.wait_ended("run-a")
        assert (run.phase, run.error["reason"]) == ("Failed", "StartTimeout")
        assert "did not start its crew within 1 s" in run.error["message"]
        assert "startTime" not in run.status and "claim" not in run.status
        await wait_pod_deleted(testbed, "run-a")
