"""A real Kueue on the dev cluster: its CRDs, its webhooks for one namespace, its controller as a process."""

import asyncio
import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.kinds import POD, Kind
from dev.go_build import KUEUE
from kube import errors
from kube.client import KubeClient
from tests.testbed.certificates import TestAuthority, store
from tests.testbed.ports import free_port, until_listening

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
LOCAL_QUEUE = Kind(GROUP, VERSION, "localqueues", "LocalQueue")
WORKLOAD = Kind(GROUP, VERSION, "workloads", "Workload")
CLUSTER_SCOPED = {
    "ResourceFlavor": "resourceflavors",
    "ClusterQueue": "clusterqueues",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
SERVED_PATHS = ("-v1-pod", "clusterqueue", "resourceflavor", "workload")
START_TIMEOUT_SECONDS = 60.0
REMOVE_TIMEOUT_SECONDS = 60.0
# Kueue reads the certificate of its metrics from this path alone.
_START = """
mount -t tmpfs tmpfs /etc
mkdir -p /etc/kueue/metrics/certs
cp "$1"/tls.* /etc/kueue/metrics/certs
shift
exec "$@"
"""


class Kueue:
    """The queue of one namespace, and what Kueue needs beside it."""

    def __init__(self, kube: KubeClient) -> None:
        self.kube = kube
        self._created: list[str] = []

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object without a namespace, which `remove` deletes."""
        await self.kube.call("POST", path, body=body)
        self._created.append(f"{path}/{body['metadata']['name']}")

    async def add(self, kind: str, name: str, **fields: Any) -> None:
        """Create an object of Kueue; once its webhook listens."""
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, **fields}
        async with asyncio.timeout(START_TIMEOUT_SECONDS):
            while True:
                try:
                    return await self.create(f"/apis/{GROUP}/{VERSION}/{CLUSTER_SCOPED[kind]}", body)
                except errors.KubeError:
                    # The webhook does not answer yet.
                    await asyncio.sleep(0.5)

    async def queue(self, cpu: str) -> None:
        """Create the local queue `crews` with this quota of processors, and the priority `urgent`."""
        name = self.kube.namespace
        await self.add("ResourceFlavor", name)
        await self.add("WorkloadPriorityClass", f"{name}-urgent", value=1000)
        flavor = {
            "name": name,
            "resources": [
                {"name": "cpu", "nominalQuota": cpu},
                {"name": "memory", "nominalQuota": "64Gi"},
            ],
        }
        await self.add(
            "ClusterQueue",
            name,
            spec={
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [flavor]}],
                "preemption": {"withinClusterQueue": "LowerPriority"},
            },
        )
        await self.kube.create(
            LOCAL_QUEUE, {"metadata": {"name": "crews"}, "spec": {"clusterQueue": self.kube.namespace}}
        )
        # On a loaded machine Kueue left the workload of an earlier pod in the queue.
        async with asyncio.timeout(START_TIMEOUT_SECONDS):
            while not _is_active(await self.kube.get(LOCAL_QUEUE, "crews")):
                await asyncio.sleep(0.1)

    async def remove(self) -> None:
        """Delete queue and content while Kueue runs, which removes its finalizers; then the webhooks."""
        async with asyncio.timeout(REMOVE_TIMEOUT_SECONDS):
            for kind in (POD, WORKLOAD, LOCAL_QUEUE):
                while found := (await self.kube.list(kind)).items:
                    for obj in found:
                        with contextlib.suppress(errors.KubeNotFound):
                            await self.kube.delete(kind, obj["metadata"]["name"], grace_seconds=0)
                    await asyncio.sleep(0.1)
            newest_first = list(reversed(self._created))
            for path in sorted(newest_first, key=lambda path: "webhook" in path):
                while await self._delete(path):
                    await asyncio.sleep(0.1)

    async def _delete(self, path: str) -> bool:
        """Delete an object; return whether it is still there."""
        try:
            await self.kube.call("DELETE", path)
            await self.kube.call("GET", path)
        except errors.KubeNotFound:
            return False
        return True


def _is_active(queue: dict[str, Any] | None) -> bool:
    states = (queue or {}).get("status", {}).get("conditions") or []
    return any(state["type"] == "Active" and state["status"] == "True" for state in states)


def manifests(part: str) -> list[dict[str, Any]]:
    """Return the objects of Kueue's own manifests, from the module that the binary is built of."""
    argv = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue"]
    module = Path(
        subprocess.run(argv, cwd=KUEUE.source, check=True, capture_output=True, text=True).stdout.strip()
    )
    files = sorted((module / "config" / "components" / part).glob("*_*.yaml")) or [
        module / "config" / "components" / part / "manifests.yaml"
    ]
    return [obj for file in files for obj in yaml.safe_load_all(file.read_text()) if obj]


async def apply_crds(kube: KubeClient) -> None:
    """Create the CRDs that are absent. They stay: other tests may use them at the same time."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    bodies = manifests("crd/bases")
    for body in bodies:
        with contextlib.suppress(errors.AlreadyExists):
            await kube.call("POST", path, body=body)
    async with asyncio.timeout(START_TIMEOUT_SECONDS):
        for body in bodies:
            while True:
                crd = await kube.call("GET", f"{path}/{body['metadata']['name']}")
                states = crd.get("status", {}).get("conditions") or []
                if any(state["type"] == "Established" and state["status"] == "True" for state in states):
                    break
                await asyncio.sleep(0.1)


def webhooks(namespace: str, port: int, authority: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and body of the webhook configurations, limited to pods of that namespace and to queues."""
    for body in manifests("webhook"):
        if body["kind"] not in WEBHOOKS:
            continue
        served = []
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            if not path.endswith(SERVED_PATHS):
                continue
            webhook["clientConfig"] = {
                "url": f"https://localhost:{port}{path}",
                "caBundle": base64.b64encode(authority.encode()).decode(),
            }
            if path.endswith("-v1-pod"):
                webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            served.append(webhook)
        name = f"kueue-{namespace}-{body['metadata']['name']}"
        yield (
            f"/apis/admissionregistration.k8s.io/v1/{body['kind'].lower()}s",
            {**body, "metadata": {"name": name}, "webhooks": served},
        )


@pytest.fixture
async def kueue(kube: KubeClient, tmp_path: Path) -> AsyncIterator[Kueue]:
    """Kueue for the pods of the test's namespace."""
    program = shutil.which("kueue")
    assert program is not None, "kueue is missing: run make nightly-tools"
    authority, certificates = TestAuthority(), tmp_path / "certificates"
    store(certificates, authority.issue("localhost"))
    port, health = free_port(), free_port()
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "default",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": port, "host": "127.0.0.1", "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["pod"]},
        "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kube.namespace}},
        # A run's limit of ephemeral storage is also a request; the queue of this test does not count it.
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage"]},
    }
    (tmp_path / "kueue.yaml").write_text(json.dumps(config))
    bed = Kueue(kube)
    with (Path(tempfile.gettempdir()) / "crewyard-test-kueue.lock").open("w") as lock:
        # Two Kueues would admit one another's pods.
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        await apply_crds(kube)
        with (tmp_path / "kueue.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *("unshare", "--mount", "sh", "-ec", _START, "sh", str(certificates)),
                program,
                f"--config={tmp_path / 'kueue.yaml'}",
                f"--kubeconfig={os.environ['KUBECONFIG']}",
                "--feature-gates=VisibilityOnDemand=false",
                stdout=log,
                stderr=log,
            )
        try:
            await asyncio.to_thread(until_listening, port, START_TIMEOUT_SECONDS)
            for path, body in webhooks(kube.namespace, port, authority.text):
                await bed.create(path, body)
            yield bed
        finally:
            try:
                await bed.remove()
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.wait()
