"""Pod terminations as the kubelet reports them and the controller reads them."""

import asyncio
import contextlib

import pytest

from controller.run.outcome import of_pod
from crds import kinds
from crds.objects import Pod, Run
from tests.cluster.controller.conftest import IMAGE, WAIT_SECONDS, ControllerTestbed, controller, settings

RUN = Run({"metadata": {"name": "run-a", "uid": "u"}, "spec": {}, "status": {"phase": "Pending"}})
SLEEP = "import time; time.sleep(600)"
ALLOCATE_MEMORY = "x = []\nwhile True: x.append(bytearray(1 << 22))"
FILL_DISK = f"open('/tmp/a', 'wb').write(bytes(1 << 25)); {SLEEP}"


def body(code, **spec):
    limits = {"memory": "64Mi", "ephemeral-storage": "8Mi"}
    container = {
        "name": "crew",
        "image": IMAGE,
        "command": ["python3", "-c", code],
        "resources": {"limits": limits, "requests": {"memory": "16Mi", "cpu": "10m"}},
    }
    return {
        "metadata": {"name": "run-a"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            **spec,
        },
    }


async def last_seen(kube, pod):
    """Return the last state of a pod: finished or deleted."""
    seen = pod
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(900):
            while not Pod(seen).finished:
                async for event in kube.watch(kinds.POD, seen["metadata"]["resourceVersion"]):
                    if event.type in ("MODIFIED", "DELETED"):
                        seen = event.object
                    if Pod(seen).finished or event.type == "DELETED":
                        return Pod(seen)
    return Pod(seen)


async def wait_running(kube):
    async with asyncio.timeout(WAIT_SECONDS):
        while Pod(await kube.get(kinds.POD, "run-a")).phase != "Running":
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("code", "spec", "reason"),
    [
        (ALLOCATE_MEMORY, {}, "OOMKilled"),
        (FILL_DISK, {}, "StorageExceeded"),
        (SLEEP, {"activeDeadlineSeconds": 3}, "DeadlineExceeded"),
        ("import os; os.kill(os.getpid(), 11)", {}, "RunnerLost"),
        ("raise SystemExit(77)", {}, "AlreadyExecuted"),
    ],
)
async def test_reason_of_a_pod_that_terminated(kube, code, spec, reason):
    """Slow: the kubelet measures the disk of a pod at long intervals."""
    end = of_pod(RUN, await last_seen(kube, await kube.create(kinds.POD, body(code, **spec))))
    assert (end.reason, bool(end.message)) == (reason, True)


@pytest.mark.parametrize(("how", "reason"), [("delete", "PodDeleted"), ("evict", "Evicted")])
async def test_reason_of_a_deleted_or_evicted_pod(kube, how, reason):
    pod = await kube.create(kinds.POD, body(SLEEP))
    await wait_running(kube)
    if how == "delete":
        await kube.delete(kinds.POD, "run-a")
    else:
        path = f"/api/v1/namespaces/{kube.namespace}/pods/run-a/eviction"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "run-a"}}
        await kube.call("POST", path, body=eviction)
    assert of_pod(RUN, await last_seen(kube, pod)).reason == reason


async def test_lost_node_is_reported_although_the_pod_is_gone(kube):
    """Kubernetes marks such a pod as failed and deletes it immediately."""
    async with controller(kube, settings(kube.namespace)) as process:
        testbed = ControllerTestbed(kube, process.config, process)
        # No node has the label, so no kubelet ends the pod or overwrites the written status.
        spec = {"plan": "pro", "pod": {"nodeSelector": {"crewyard.dev/none": "here"}}}
        await kube.create(kinds.PROJECT, {"metadata": {"name": "demo"}, "spec": spec})
        await testbed.deployment("dep-a")
        await testbed.wait_active("dep-a")
        await testbed.run("run-a", project="demo")
        await testbed.claim("run-a")
        await testbed.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
        node_lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        status = {"phase": "Failed", "conditions": [{**node_lost, "message": "PodGC: node no longer exists"}]}
        # The pod garbage collector does the same: patch the phase, then delete.
        await kube.patch(kinds.POD, "run-a", {"status": status}, "status")
        await kube.delete(kinds.POD, "run-a", grace_seconds=0)
        ended = await testbed.wait_ended("run-a")
        assert ended.error["reason"] == "NodeLost"
        assert "node no longer exists" in ended.error["message"]
