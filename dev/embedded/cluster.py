"""The embedded ground: one Kubernetes node out of Go modules and Debian packages, on this machine itself.

Straight-line shell around the other files: what is started in which order,
and how it all is taken away again.
"""

import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from dev import environment, go_build, packages, state
from dev.cluster import pod_pids
from dev.cluster.install import deploy
from dev.cluster.kube_client import Kube, KubeError
from dev.embedded import cgroups, kubelet_access, requirements, sysctls, teardown
from dev.embedded.components import (
    apiserver,
    containerd,
    controller_manager,
    etcd,
    kube_proxy,
    kubelet,
    scheduler,
)
from dev.errors import GroundError
from dev.images import base_image, images
from dev.net import bridge, dns, firewall, pki, service_names
from dev.network_policy import install as fences
from dev.network_policy import nftables
from dev.process import program
from dev.process.program import Program
from dev.progress import Progress
from dev.registry import access, server, signing, token_server
from dev.settings import NODE, Settings

# In the order of the start; `down` goes the other way.
NAMES = (
    "etcd",
    "registry",
    "registry-tokens",
    "containerd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "fences",
    "kubelet",
    "kube-proxy",
    "dns",
    "services",
)
_NODE_SECONDS = 60


class Embedded:
    """The ground on this machine. One at a time changes it: a lock in the state directory sees to that."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: Progress) -> None:
        self._settings = settings
        self._inherited = inherited
        self._progress = progress

    def up(self) -> None:
        """Builds, installs, starts what is not there or does not run, and deploys the service."""
        requirements.check()
        base_image.sources()  # a build of minutes later it would be too late to say that there are none
        with state.locked(self._settings, self._progress):
            state.forget_last_boot(self._settings)
            state.mark(self._settings)
            packages.install(self._settings, self._progress, packages.GROUND)
            go_build.link(self._settings, go_build.build(self._settings, go_build.KUBERNETES, self._progress))
            executor = go_build.build(self._settings, go_build.KANIKO, self._progress)
            pki.ensure(self._settings, self._progress)
            size = bridge.mtu()
            bridge.up(size)
            sysctls.apply(self._settings)
            firewall.up()
            nftables.prepare()
            fences.plugins(self._settings)
            cgroups.make()
            made = self._start(size, executor)
            deploy(self._settings, made, self._progress)

    def _start(self, size: int, executor: Path) -> images.Images:
        settings = self._settings
        with self._progress.step("cluster") as step:
            access.key(settings)
            signing.ensure(settings)
            registries = [
                server.program(settings, self._registry_secret()),
                token_server.process(settings),
            ]
            started = self._ensure([etcd.program(settings), *registries])
            pause = images.ensure(settings, images.pause_recipe(), self._progress)
            started += self._ensure([containerd.program(settings, pause, size, self._inherited)])
            started += self._ensure([apiserver.program(settings)])
            kubelet_access.ensure(Kube(settings.kubeconfig))
            rest = [
                controller_manager.program(settings),
                scheduler.program(settings),
                fences.process(settings),
                kubelet.program(settings),
            ]
            rest += [kube_proxy.program(settings), dns.program(settings), service_names.process(settings)]
            started += self._ensure(rest)
            step.detail = "waiting for the node"
            self._node_ready()
            if trouble := pod_pids.problem(pod_pids.limits(Kube(settings.kubeconfig))):
                raise GroundError(trouble)
            step.detail = f"started {', '.join(started)}" if started else "runs"
        made = images.Images(
            pause=pause,
            kaniko=images.ensure(settings, images.kaniko_recipe(executor), self._progress),
            base=images.ensure(settings, images.base_recipe(self._inherited), self._progress),
        )
        images.note_all(settings, made)
        return made

    def _ensure(self, programs: list[Program]) -> list[str]:
        started = [one.name for one in programs if program.start(self._settings, one)]
        for one in programs:
            program.wait_ready(self._settings, one)
        return started

    def _node_ready(self) -> None:
        deadline = time.monotonic() + _NODE_SECONDS
        kube = Kube(self._settings.kubeconfig)
        while True:
            try:
                node = kube.get(f"/api/v1/nodes/{NODE}")
            except KubeError:
                node = None
            conditions = node["status"].get("conditions", []) if node else []
            ready = [one for one in conditions if one["type"] == "Ready"]
            if ready and ready[0]["status"] == "True":
                return
            if time.monotonic() > deadline:
                reason = ready[0].get("message") if ready else "it has not registered"
                log = program.log_file(self._settings, "kubelet")
                raise GroundError(
                    f"The node is not ready after {_NODE_SECONDS} s: {reason}. Its log is {log}."
                )
            time.sleep(0.1)

    def _registry_secret(self) -> str:
        file = self._settings.data / "registry-secret"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(secrets.token_hex(16))
        return file.read_text()

    def deploy(self) -> None:
        """Builds the service's image if need be and installs it."""
        requirements.check_root()
        with state.locked(self._settings, self._progress):
            deploy(self._settings, images.noted(self._settings), self._progress)

    def down(self, purge: bool) -> None:
        """Takes all off the machine again; with `purge` the state too."""
        requirements.check_root()
        if not self._settings.state.exists():
            return
        carried = state.other(self._settings)
        if carried:
            raise GroundError(
                f"What runs here has its state in {carried}: CREWYARD_STATE={carried} make down"
            )
        with state.locked(self._settings, self._progress):
            with self._progress.step("stopping") as step:
                state.forget_last_boot(self._settings)
                left = teardown.stop(self._settings, NAMES)
                step.detail = "nothing is left running"
            if left:
                raise GroundError(
                    "These could not be removed; run `make down` again:\n  " + "\n  ".join(left)
                )
            state.unmark()
            if purge:
                with self._progress.step(f"removing {self._settings.state}"):
                    state.remove(self._settings)

    def env(self) -> dict[str, str]:
        """The variables for a shell."""
        return environment.variables(self._settings, self._inherited)

    def problems(self) -> list[str]:
        """The processes that do not run."""
        return [f"{name} does not run" for name in NAMES if program.running(self._settings, name) is None]

    def status(self) -> str:
        """A line per process."""
        lines = []
        for name in NAMES:
            record = program.running(self._settings, name)
            now = f"runs (process {record.pid})" if record else "does not run"
            lines.append(f"{name:24} {now:26} {program.log_file(self._settings, name)}")
        if self._settings.kubeconfig.exists():
            lines.append(fences.line(self._settings))
            lines.append(pod_pids.line(Kube(self._settings.kubeconfig)))
        return "\n".join(lines)
