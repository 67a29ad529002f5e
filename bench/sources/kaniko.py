"""Peer of builds: a pod with the plain Kaniko executor and its cache in the registry.

Its context is a commit on a git server of this process, as in a pipeline. Each peer has its own namespace,
because only the controller may create such pods where crews run.
"""

import json
import os
import secrets
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench.sources.peak_memory import PeakMemory, watch_peak
from crds.kinds import POD
from dev.registry import access
from dev.settings import from_environment
from kube.client import KubeClient
from tests.e2e.demo import GIT_HOST
from tests.e2e.testbed import E2eTestbed, eventually
from tests.testbed.git_server import GitServer, Repository

_MEMORY_LIMIT = "4Gi"
_SECRET = "push"


async def installation_settings(testbed: E2eTestbed) -> dict[str, str]:
    """Return the settings of the installation that builds depend on."""
    config_maps = json.loads(await testbed.kubectl("-n", "crewyard-system", "get", "configmap", "-o", "json"))
    for config_map in config_maps["items"]:
        if config_map["metadata"]["name"].startswith("crewyard-config"):
            settings: dict[str, str] = config_map["data"]
    return settings


class KanikoPeer:
    """Builds of one repository by pods of the plain executor."""

    def __init__(self, testbed: E2eTestbed, settings: dict[str, str], server: GitServer) -> None:
        self.testbed = testbed
        self.settings = settings
        self.base = json.loads(settings["CREWYARD_BASE_IMAGES"])["3.11"]
        self.name = f"peer-{secrets.token_hex(3)}"
        self.namespace = f"crewyard-bench-{self.name}"
        self.server = server
        self.repository: Repository = server.create(self.name)
        self._kube: KubeClient | None = None

    async def open(self) -> None:
        """Create the namespace and the push Secret."""
        await self.testbed.kubectl("create", "namespace", self.namespace)
        # For the embedded node's registry; a registry without authentication ignores it.
        auth = access.docker_config(from_environment(os.environ), "bench")
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _SECRET, "namespace": self.namespace},
            "stringData": {"config.json": auth},
        }
        await self.testbed.kubectl("-n", self.namespace, "apply", "-f", "-", stdin=json.dumps(secret))
        self._kube = await KubeClient.connect(self.namespace, "bench")

    async def close(self) -> None:
        """Delete the namespace with its content."""
        if self._kube is not None:
            await self._kube.close()
        delete = ("delete", "namespace", self.namespace, "--ignore-not-found", "--wait=false")
        await self.testbed.kubectl(*delete)

    def watch_peak(self) -> AbstractAsyncContextManager[PeakMemory]:
        """Watch the peak memory of its builds; call after `open`."""
        assert self._kube is not None
        return watch_peak(self._kube, f"app={self.name}")

    async def build(self, files: dict[str, bytes]) -> float:
        """Return the seconds from the pod's creation to the push of the image. Raises RuntimeError."""
        assert self._kube is not None
        dockerfile = (
            f"FROM {self.base}\nWORKDIR /app\nCOPY requirements.txt /app/\n"
            "RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir -r requirements.txt\n"
            "COPY . /app\n"
        )
        self.repository.commit({**files, "Dockerfile": dockerfile}, "Build")
        body = self._pod()
        name = body["metadata"]["name"]
        started = time.monotonic()
        await self._kube.create(POD, body)
        done = await eventually(
            lambda: self._pod_now(name), lambda phase: phase in ("Succeeded", "Failed"), 900, 0.05
        )
        seconds = time.monotonic() - started
        if done != "Succeeded":
            log = await self.testbed.kubectl("-n", self.namespace, "logs", name, "--tail=20", check=False)
            raise RuntimeError(f"the peer's build failed:\n{log}")
        await self._kube.delete(POD, name)
        return seconds

    async def _pod_now(self, name: str) -> str:
        assert self._kube is not None
        pod = await self._kube.get(POD, name)
        return str(((pod or {}).get("status") or {}).get("phase"))

    def _pod(self) -> dict[str, Any]:
        registry = self.settings["CREWYARD_REGISTRY"]
        host = registry.partition("/")[0]
        return {
            "metadata": {"name": f"{self.name}-{secrets.token_hex(3)}", "labels": {"app": self.name}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "volumes": [{"name": "push", "secret": {"secretName": _SECRET}}],
                "containers": [
                    {
                        "name": "kaniko",
                        "image": self.settings["CREWYARD_KANIKO_IMAGE"],
                        "env": [{"name": "GIT_PULL_METHOD", "value": "http"}],
                        "volumeMounts": [{"name": "push", "mountPath": "/kaniko/.docker"}],
                        "args": [
                            f"--context=git://{GIT_HOST}:{self.server.port}/{self.name}.git#refs/heads/main",
                            f"--destination={registry}/bench/{self.name}:latest",
                            "--cache=true",
                            f"--cache-repo={registry}/bench/{self.name}-cache",
                            f"--insecure-registry={host}",
                            f"--skip-tls-verify-registry={host}",
                            "--compressed-caching=false",
                            "--snapshot-mode=redo",
                            "--verbosity=warn",
                        ],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "256Mi"},
                            "limits": {"cpu": "2", "memory": _MEMORY_LIMIT},
                        },
                    }
                ],
            },
        }
