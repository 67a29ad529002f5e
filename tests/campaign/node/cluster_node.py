"""The embedded node's own processes, killed, halted, set back and started again by the functions of `dev`.

Requires the embedded dev cluster and CREWYARD_NODE_FAULTS=1, which `make test-all` and
`make campaign` set, since everything else on the cluster gets the faults too. Blocks: call it in a thread.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from dev import state
from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.embedded import cgroups, cluster, host_cleanup, replicas, teardown
from dev.embedded.components import apiserver, containerd, controller_manager, etcd, kubelet, scheduler
from dev.images import images
from dev.net import bridge
from dev.process import process, program
from dev.process.program import ProcessSpec
from dev.progress import StepProgress
from dev.registry import server
from dev.settings import BRIDGE_ADDRESS, NODE, REPOSITORY, Settings, from_environment

ALLOWED = "CREWYARD_NODE_FAULTS"
PROGRAMS = (
    "etcd",
    "registry",
    "containerd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
)
"""Those that can be started one by one, in the order of `make up`."""
READY_SECONDS = 180.0
UP_SECONDS = 600.0
GONE_SECONDS = 30.0


class ClusterNode:
    """The node that this machine carries."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._progress = StepProgress()
        self._kube = HttpKubeApi(settings.kubeconfig)

    @property
    def settings(self) -> Settings:
        """The directories of the dev cluster."""
        return self._settings

    @property
    def address(self) -> str:
        """Where pods reach this machine."""
        return BRIDGE_ADDRESS

    @classmethod
    def open(cls) -> "ClusterNode":
        """Open the embedded dev cluster. Skip the test without one, or when faults are not allowed."""
        if os.environ.get(ALLOWED) != "1":
            pytest.skip(f"{ALLOWED}=1 lets this kill the processes of the whole cluster")
        settings = from_environment(os.environ)
        if Path(os.environ.get("KUBECONFIG", "")) != settings.kubeconfig:
            pytest.skip("the cluster is not the embedded node")
        silent = [name for name in cluster.NAMES if program.running(settings, name) is None]
        if silent:
            pytest.skip(f"the embedded node is not whole: {', '.join(silent)} does not run")
        return cls(settings)

    def _handle(self, name: str) -> int:
        record = program.running(self._settings, name)
        assert record is not None, f"{name} does not run"
        return os.pidfd_open(record.pid)

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to one of the node's programs."""
        handle = self._handle(name)
        try:
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

    def kill(self, *names: str) -> None:
        """Kill programs with SIGKILL and wait for their exit."""
        for name in names:
            self.send(name, signal.SIGKILL)
        end = time.monotonic() + GONE_SECONDS
        while any(program.running(self._settings, name) for name in names):
            assert time.monotonic() < end, f"{names} outlived SIGKILL"
            time.sleep(0.02)

    def crash(self, name: str) -> None:
        """Kill a program with its children, such as PostgreSQL's, and wait for the exit of all."""
        record = program.running(self._settings, name)
        assert record is not None, f"{name} does not run"
        listed = Path(f"/proc/{record.pid}/task/{record.pid}/children").read_text()
        children = [one for pid in listed.split() if (one := process.identity_of(int(pid))) is not None]
        self.kill(name)
        # One that this test started stays a zombie, whose pid the next PostgreSQL takes for a living server.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(record.pid, 0)
        for child in children:
            assert process.stop(child, grace=0), f"a child of {name} outlived SIGKILL"

    def start(self, *names: str) -> None:
        """Start programs as `make up` would, one after the other, each ready before the next."""
        with state.locked(self._settings, self._progress):
            for name in names:
                one = self._program(name)
                program.start(self._settings, one)
                program.wait_ready(self._settings, one)

    def _program(self, name: str) -> ProcessSpec:
        settings = self._settings
        if name in replicas.NAMES:
            return self._backends[name]
        makers: dict[str, Callable[[], ProcessSpec]] = {
            "etcd": lambda: etcd.process_spec(settings),
            "registry": lambda: server.process_spec(
                settings, (settings.data / "registry-secret").read_text()
            ),
            "containerd": lambda: containerd.process_spec(
                settings, images.recorded(settings).pause, bridge.mtu(), os.environ
            ),
            "kube-apiserver": lambda: apiserver.process_spec(settings),
            "kube-controller-manager": lambda: controller_manager.process_spec(settings),
            "kube-scheduler": lambda: scheduler.process_spec(settings),
            "kubelet": lambda: kubelet.process_spec(settings),
        }
        return makers[name]()

    @cached_property
    def _backends(self) -> dict[str, ProcessSpec]:
        return {one.name: one for one in replicas.prepare(self._settings, self._progress)}

    def copy_store(self, to: Path) -> None:
        """A copy of etcd's files as they are at one moment."""
        self.send("etcd", signal.SIGSTOP)
        try:
            shutil.copytree(self._settings.data / "etcd", to)
        finally:
            self.send("etcd", signal.SIGCONT)

    def version(self) -> int:
        """The newest version that the apiserver has given."""
        return int(self._kube.call("GET", "/api/v1/namespaces?limit=1")["metadata"]["resourceVersion"])

    def catch_up(self, version: int) -> None:
        """Write until the resource versions reach their old value: then no client's cache is ahead."""
        place = "/api/v1/namespaces/default/configmaps"
        self._kube.create(place, {"metadata": {"name": "catching-up"}})
        number = 0
        while int(self._patched(f"{place}/catching-up", number)["metadata"]["resourceVersion"]) <= version:
            number += 1
        self._kube.call("DELETE", f"{place}/catching-up")

    def _patched(self, path: str, number: int) -> Any:
        body = {"data": {"number": str(number)}}
        return self._kube.call("PATCH", path, body, content="application/merge-patch+json")

    def set_back(self, to: Path) -> None:
        """etcd's files become the older copy; all that remembers the newer ones starts again."""
        rest = ("kube-controller-manager", "kube-scheduler", "kubelet")
        self.kill("kube-apiserver", "etcd", *rest)
        place = self._settings.data / "etcd"
        shutil.rmtree(place)
        shutil.copytree(to, place)
        self.start("etcd", "kube-apiserver", *rest)

    def reboot(self) -> None:
        """As when the power goes: everything is killed, volatile state is deleted, then `make up`."""
        settings = self._settings
        with state.locked(settings, self._progress):
            for name in cluster.NAMES:
                if program.running(settings, name):
                    self.kill(name)
            for pid in cgroups.members():
                _kill(pid)
            for identity in host_cleanup.shims(settings):
                _kill(identity.pid)
            left = teardown.stop(settings, cluster.NAMES)
            assert left == [], left
        done = subprocess.run(
            [sys.executable, "-m", "dev", "up"],
            cwd=REPOSITORY, capture_output=True, text=True, timeout=UP_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]

    def mend(self) -> None:
        """Continue stopped processes and start killed ones after a test."""
        names = (*PROGRAMS, *replicas.NAMES) if replicas.enabled(self._settings) else PROGRAMS
        for name in names:
            if program.running(self._settings, name):
                self.send(name, signal.SIGCONT)
            else:
                self.start(name)

    def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until the node is ready again and the installed service answers."""
        end = time.monotonic() + seconds
        while (problem := self._problem()) is not None:
            assert time.monotonic() < end, f"{problem} after {seconds:.0f} s"
            time.sleep(0.5)

    def _problem(self) -> str | None:
        try:
            node = self._kube.get(f"/api/v1/nodes/{NODE}")
            service = self._kube.call("GET", "/apis/apps/v1/namespaces/crewyard-system/deployments")
        except KubeApiError as error:
            return str(error)
        conditions = (node or {}).get("status", {}).get("conditions", [])
        if not any(
            condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
        ):
            return "the node is not ready"
        away = [
            item["metadata"]["name"]
            for item in service["items"]
            if item.get("status", {}).get("availableReplicas", 0) < item["spec"].get("replicas", 1)
        ]
        return f"{', '.join(away)} is not available" if away else None


def _kill(pid: int) -> None:
    if process.identity_of(pid) is not None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
