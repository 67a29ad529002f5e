"""A node that is lost before a run on it starts: a Node object that no machine stands behind."""

import json
import secrets
from typing import Any

import pytest

from tests.e2e.testbed import eventually

LABEL = "crewyard.dev/test-node"


@pytest.fixture
async def ghost(testbed):
    """The name of a node that says that it is ready; nothing ever starts there."""
    name = f"ghost-{secrets.token_hex(3)}"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: name}},
        # All other pods of the cluster stay off it.
        "spec": {"taints": [{"key": LABEL, "value": name, "effect": "NoSchedule"}]},
    }
    await testbed.kubectl("create", "-f", "-", stdin=json.dumps(node))
    room = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "50Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
    await testbed.kubectl(
        "patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(status)
    )
    yield name
    await testbed.kubectl("delete", "node", name, "--ignore-not-found")


@pytest.mark.nightly
async def test_run_on_a_lost_node_starts_on_another_one(testbed, upload_projects, ghost):
    """Slow: the garbage collector of pods deletes that of a lost node after a minute."""
    taint = {"key": LABEL, "operator": "Equal", "value": ghost, "effect": "NoSchedule"}
    # No kubelet tells of it: it is not ready at first, and unreachable where the build takes a minute.
    lost = [
        {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoSchedule"}
        for word in ("not-ready", "unreachable")
    ]
    upload_project = await upload_projects()
    await upload_project.deploy_and_wait({"main.py": "def kickoff(): ..."})

    async def patch_pod(pod: dict[str, Any] | None) -> None:
        patch = json.dumps({"spec": {"pod": pod}})
        await testbed.kubectl("patch", "cproj", upload_project.project, "--type=merge", "-p", patch)

    await patch_pod({"nodeSelector": {LABEL: ghost}, "tolerations": [taint, *lost]})
    run = (await testbed.post("/v1/runs", {"deployment": upload_project.project}))["id"]
    name = run.replace("_", "-", 1)

    async def node() -> str:
        found = await testbed.kubectl(
            "get", "pod", name, "--ignore-not-found", "-o", "jsonpath={.spec.nodeName}", check=False
        )
        return found.strip()

    await eventually(node, lambda seen: seen == ghost, 300)
    await patch_pod(None)
    await testbed.kubectl("delete", "node", ghost)
    ended = await eventually(
        lambda: testbed.get(f"/v1/runs/{run}"), lambda seen: seen["completed_at"] is not None, 600, 0.5
    )
    assert ended["status"] == "succeeded", ended
    started = [message.event for message in await testbed.events(run) if message.event == "run.started"]
    assert started == ["run.started"]
    given_back = await testbed.kubectl(
        "get", "events", "--field-selector", f"involvedObject.name={name},reason=GivenBack", "-o", "name"
    )
    assert len(given_back.split()) == 1
