"""An installation by the chart in its own namespaces, on a cluster with another installation.

Uses only the commands of docs/installation.md.
"""

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crewyard import Client
from dev import settings, state
from dev.cluster.kube_client import HttpKubeApi
from dev.images import images, service_image
from dev.progress import StepProgress
from dev.registry import access
from dev.settings import BRIDGE_ADDRESS, POD_NETWORK, REGISTRY, SERVICE_NETWORK
from tests.testbed.ports import until_listening

ROOT = Path(__file__).parents[3]
CHART = ROOT / "manifests" / "chart"
SERVICE_USER = 65532
COMMAND_TIMEOUT_SECONDS = 300
DELETE_TIMEOUT = "--timeout=280s"
"""For namespaces, whose pods have a grace period. Less than `COMMAND_TIMEOUT_SECONDS`."""
PUSH_SECRET = "registry-push"


class CommandError(Exception):
    """A command failed; the text has the command and its output."""


def command(*argv: str, stdin: str = "", seconds: int = COMMAND_TIMEOUT_SECONDS) -> str:
    """Run a command and return its standard output. Raises CommandError."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise CommandError(f"{' '.join(argv)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def kubectl(*arguments: str, stdin: str = "") -> str:
    """Run kubectl and return its standard output. Raises CommandError."""
    return command("kubectl", *arguments, stdin=stdin)


def dev_settings() -> settings.Settings:
    """Return the settings of the dev cluster."""
    return settings.from_environment(os.environ)


def image() -> str:
    """Return the service image of the working tree by digest; build it if it is missing."""
    found, progress = dev_settings(), StepProgress()
    with state.locked(found, progress):
        return service_image.ensure(found, HttpKubeApi(found.kubeconfig), images.recorded(found), progress)


def egress_rule(port: int, protocols: tuple[str, ...] = ("TCP",)) -> dict[str, Any]:
    """Return an egress rule to the host, which serves DNS and the registry."""
    return {
        "to": [{"ipBlock": {"cidr": f"{BRIDGE_ADDRESS}/32"}}],
        "ports": [{"protocol": protocol, "port": port} for protocol in protocols],
    }


@dataclass
class Installation:
    """One release. `port` is the local port forwarded to its API."""

    port: int
    service: str
    name: str = field(default_factory=lambda: f"install-{secrets.token_hex(3)}")
    extra_values: dict[str, Any] = field(default_factory=dict)
    """Values that extend and override those this cluster needs."""

    @property
    def namespace(self) -> str:
        """Namespace of the service."""
        return f"{self.name}-system"

    @property
    def crews(self) -> str:
        """Namespace of the crews."""
        return f"{self.name}-crews"

    @property
    def team(self) -> str:
        """Namespace of a team, in installations that serve one."""
        return f"{self.name}-team"

    @property
    def prefix(self) -> str:
        """Name prefix of its objects."""
        return f"{self.name}-crewyard"

    @property
    def directory(self) -> Path:
        """Host directory of the volume; the node has no provisioner."""
        return dev_settings().data / "volumes" / self.name

    def values(self) -> dict[str, Any]:
        """Return the chart values that this cluster needs."""
        made = images.recorded(dev_settings())
        repository, _, digest = self.service.partition("@")
        names = egress_rule(53, ("UDP", "TCP"))
        return {
            "image": {"repository": repository, "digest": digest},
            # The other installation has the CRDs, and all tests of this cluster use them.
            "crds": {"install": False},
            "crews": {"namespace": self.crews},
            "publicUrl": f"http://127.0.0.1:{self.port}",
            "registry": {"prefix": f"{REGISTRY}/{self.name}", "insecure": True, "pushSecret": PUSH_SECRET},
            "builds": {"kanikoImage": made.kaniko, "baseImages": {images.PYTHON: made.base}},
            "network": {"allow": [f"{BRIDGE_ADDRESS}/32"], "deny": [POD_NETWORK, SERVICE_NETWORK]},
            "networkPolicies": {"runs": [names], "builds": [names, egress_rule(5000), egress_rule(5001)]},
            "persistence": {"size": "1Gi", "storageClass": "", "volumeName": self.name},
            **self.extra_values,
        }

    def secret(self, name: str, **entries: str) -> None:
        """Create a Secret of the service."""
        literals = [f"--from-literal={key}={value}" for key, value in entries.items()]
        kubectl("-n", self.namespace, "create", "secret", "generic", name, *literals)

    def prepare(self) -> None:
        """Create the volume as an operator without a provisioner does."""
        self.directory.mkdir(parents=True)
        os.chown(self.directory, SERVICE_USER, SERVICE_USER)
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": self.name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "hostPath": {"path": str(self.directory), "type": "Directory"},
            },
        }
        kubectl("apply", "-f", "-", stdin=json.dumps(volume))

    def install(self, *changes: str) -> str:
        """Install or upgrade and wait until ready; `changes` as for `--set-json`."""
        argv = ["helm", "upgrade", "--install", self.name, str(CHART), "--namespace", self.namespace]
        argv += [
            "--create-namespace",
            "--wait",
            f"--timeout={COMMAND_TIMEOUT_SECONDS - 30}s",
            "--values",
            "-",
        ]
        for change in changes:
            argv += ["--set-json", change]
        try:
            output = command(*argv, stdin=json.dumps(self.values()))
        except CommandError as error:
            raise CommandError(f"{error}\n{self.diagnostics()}") from error
        kubectl("apply", "-f", "-", stdin=json.dumps(self.push_secret(self.crews)))
        return output

    def push_secret(self, namespace: str) -> dict[str, Any]:
        """Return the Secret of a namespace that permits pushes below its prefix of the registry."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": PUSH_SECRET, "namespace": namespace},
            "stringData": {".dockerconfigjson": access.docker_config(dev_settings(), self.name)},
        }

    def uninstall(self) -> None:
        """Uninstall the release; the chart keeps CRDs, objects and data."""
        command("helm", "uninstall", self.name, "--namespace", self.namespace, "--wait", DELETE_TIMEOUT)

    def diagnostics(self) -> str:
        """Return the pod list and logs for the message of a failed test."""
        found = ["-n", self.namespace]
        argv = ["kubectl", *found, "logs", "-l", "app.kubernetes.io/name=crewyard", "--tail=20", "--prefix"]
        output = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        pods = subprocess.run(["kubectl", *found, "get", "pods"], capture_output=True, text=True, timeout=60)
        return f"{pods.stdout}{output.stdout}{output.stderr}"

    def create_key(self) -> str:
        """Create an admin key with the documented command."""
        return kubectl(
            "-n", self.namespace, "exec", f"deployment/{self.prefix}-api", "--", "python3", "-m", "api", "key"
        ).strip()

    @contextmanager
    def client(self, key: str, target: str = "") -> Iterator[Client]:
        """Open a client through a port-forward as in NOTES.txt; `target` is a pod instead of the Service."""
        target_args = (target or f"service/{self.prefix}-api", f"{self.port}:8080")
        argv = ["kubectl", "-n", self.namespace, "port-forward", *target_args]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until_listening(self.port, 180)
            with Client(f"http://127.0.0.1:{self.port}", key) as client:
                yield client
        finally:
            process.terminate()
            process.wait(30)

    def remove(self) -> None:
        """Delete everything of the installation in any state."""
        subprocess.run(
            ["helm", "uninstall", self.name, "-n", self.namespace, "--ignore-not-found"],
            capture_output=True, timeout=COMMAND_TIMEOUT_SECONDS,
        )  # fmt: skip
        for namespace in (self.crews, self.team, self.namespace):
            kubectl("delete", "namespace", namespace, "--ignore-not-found", DELETE_TIMEOUT)
        kubectl("delete", "pv", self.name, "--ignore-not-found", "--timeout=60s")
        shutil.rmtree(self.directory, ignore_errors=True)


def until(check: Any, seconds: float = 300) -> Any:
    """Return the result of `check` once it is true. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(0.5)
    return found
