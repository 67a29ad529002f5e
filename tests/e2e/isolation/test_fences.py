"""Build code finds no secret and reaches no internal service; network policies apply before a pod starts."""

import contextlib
import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.index import WheelIndex
from tests.e2e.isolation.test_hostile import METADATA, address_of_metadata
from tests.e2e.secret import secret
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import tree
from tests.testbed.listeners import listening

IMAGE = "registry.crewyard.internal:5000/library/python:3.11-slim"
PODS = 6
CANARY = Path(__file__).parent / "canary"
here = pytest.mark.skipif(
    os.geteuid() != 0 or os.environ.get("CREWYARD_CLUSTER") in ("kind", "current"),
    reason="the node is not this machine, or this is not root",
)


@here
async def test_build_code_finds_no_credentials(testbed, upload_projects, host_address):
    """It finds its own canary, which proves the search; it does not find those planted in Secrets.

    Slow: a build whose code searches all files and memory, and connects to closed addresses.
    """
    own, variable, password = (f"canary-{secrets.token_hex(12)}" for _ in range(3))
    running = ["--namespace", "crewyard-system", "--field-selector=status.phase=Running", "-o", "json"]
    labels = "app.kubernetes.io/component=controller"
    [controller, *_] = json.loads(await testbed.kubectl("get", "pods", "-l", labels, *running))["items"]
    with (
        address_of_metadata(),
        listening(METADATA, port=80) as metadata,
        listening(host_address, port=2379) as etcd,
        WheelIndex(host_address, "pilot", password, {}) as index,
    ):
        places = {
            "apiserver": (host_address, 6443),
            "apiserver by its service": ("10.214.0.1", 443),
            "kubelet": (host_address, 10250),
            "etcd": (host_address, 2379),
            "metadata": (METADATA, 80),
            "controller, another port": (controller["status"]["podIP"], 8080),
            "names": (host_address, 53),
        }
        address = f"http://{host_address}:{index.port}/simple/"
        async with secret(testbed, index_url=address, username="pilot", password=password) as named:
            upload_project = await upload_projects(build={"secret_ref": {"name": named}})
            answer = await testbed.call(
                "PUT", f"/v1/projects/{upload_project.project}/env", {"variables": {"WORD": variable}}
            )
            assert answer.status == 200, answer.body
            files = {**tree(CANARY), "places.json": json.dumps(places), "own.txt": own}
            deployment = await upload_project.deploy(files)
            done = await upload_project.wait_finished(deployment)
            log = await upload_project.log(deployment)
            [report] = re.findall(r"SAW (\{.*\})", log)[:1] or [None]
            assert report is not None, (done, log)
            saw = json.loads(report)
    print(json.dumps(saw, indent=1))
    assert set(saw["secrets"]) == {own}, saw["secrets"]
    assert saw["files"] > 1000
    assert saw["credentials"] == []
    assert [
        name for name in saw["variables"] if re.search("TOKEN|SECRET|PASS|AUTH|CREWYARD|GIT_", name)
    ] == []
    # Containers of one pod do not see one another: what starts the shell, the shell, and uv.
    assert [name for name in saw["processes"] if "build" in name or "pause" in name] == []
    # Names have to be answered; that a knock arrives at all is shown by it.
    assert saw["reached"] == ["names"]
    assert (metadata.visits, etcd.visits) == (0, 0)


@contextlib.contextmanager
def ear(address: str) -> Iterator[tuple[int, list[bytes]]]:
    """A UDP port that records every packet."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 0))
        server.settimeout(0.2)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.append(server.recvfrom(100)[0])

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield int(server.getsockname()[1]), heard
        finally:
            over.set()
            thread.join()


def knocker(name: str, fenced: bool, address: str, port: int) -> dict[str, Any]:
    """A pod whose very first instructions send packets, one after the other."""
    knock = f"echo {name} > /dev/udp/{address}/{port}"
    script = f"{knock}; for i in 1 2 3 4 5 6 7 8 9; do {knock}; sleep 0.1; done"
    labels = {"fenced": "yes"} if fenced else {}
    container = {"name": "main", "image": IMAGE, "command": ["bash", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


@here
async def test_restricted_pod_sends_nothing_from_its_start(testbed, host_address):
    """Slow: many pods start, beside as many that no policy selects, whose first packets arrive."""
    name = f"e2e-race-{secrets.token_hex(4)}"
    place = ["--namespace", name]
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "closed"},
        "spec": {"podSelector": {"matchLabels": {"fenced": "yes"}}, "policyTypes": ["Egress"]},
    }
    await testbed.kubectl("create", "namespace", name)
    try:
        await testbed.kubectl("create", *place, "-f", "-", stdin=json.dumps(policy))
        await eventually(lambda: testbed.kubectl("get", "sa", *place), lambda accounts: "default" in accounts)
        with ear(host_address) as (port, heard):
            pods = [
                knocker(f"{kind}-{number}", kind == "fenced", host_address, port)
                for number in range(PODS)
                for kind in ("fenced", "open")
            ]
            body = {"apiVersion": "v1", "kind": "List", "items": pods}
            await testbed.kubectl("create", *place, "-f", "-", stdin=json.dumps(body))

            async def ended() -> list[str]:
                listed = json.loads(await testbed.kubectl("get", "pods", *place, "-o", "json"))["items"]
                return [one["status"].get("phase", "") for one in listed]

            await eventually(
                ended, lambda phases: len(phases) == 2 * PODS and set(phases) == {"Succeeded"}, 300, 0.5
            )
        assert {one.decode().strip() for one in heard} == {f"open-{number}" for number in range(PODS)}
        assert len(heard) == 10 * PODS, "not even the first was lost of those that are open"
    finally:
        await testbed.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def condition(kind: str) -> dict[str, Any]:
    """One as the controller writes it of what is built."""
    times = {"lastTransitionTime": "2026-11-21T10:00:00Z", "observedGeneration": 1}
    return {"type": kind, "status": "True", "reason": "Superseded", "message": "built", **times}


async def tagged(testbed, project: str) -> str:
    """A Deployment that seems built, with an image by its tag: as if the controller had been wrong."""
    status = {
        "phase": "Superseded",
        "order": 1,
        "observedGeneration": 1,
        "plan": {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"},
        "conditions": [condition("Ready"), condition("Built")],
        "image": IMAGE,
    }
    source = {"archive": {"upload": f"upl_{'0' * 26}", "sha256": "0" * 64}}
    for _ in range(10):
        name = f"dep-e2e-{secrets.token_hex(4)}"
        await testbed.apply("Deployment", name, {"project": project, "source": source}, "create")
        patch = ["patch", "cdep", name, "--subresource=status", "--type=merge"]
        await testbed.kubectl(*patch, "-p", json.dumps({"status": status}), check=False)
        found = await testbed.object("deployments", name)
        if found["status"].get("image") == IMAGE and found["status"]["phase"] in ("Superseded", "Active"):
            return name
        # Its build began meanwhile, and came to nothing.
    raise AssertionError("ten builds began sooner than a status was patched")


async def test_run_of_image_by_tag_is_refused(testbed, upload_projects):
    upload_project = await upload_projects()
    deployment = await tagged(testbed, upload_project.project)
    run = f"run-e2e-{secrets.token_hex(4)}"
    await testbed.apply("Run", run, {"project": upload_project.project, "deployment": deployment}, "create")
    ended = await eventually(
        lambda: testbed.object("runs", run), lambda seen: seen.get("status", {}).get("phase") == "Failed", 120
    )
    assert "must name the image of a run by digest" in ended["status"]["error"]["message"]
    assert await testbed.kubectl("get", "pod", run, "--ignore-not-found") == ""
