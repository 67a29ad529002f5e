"""Embedded dev cluster: one Kubernetes node from Go modules and Debian packages, on this machine.

Imperative shell around the other modules: the order of start and stop.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from dev import environment, go_build, packages, state
from dev.cluster import credentials, live_reload, pod_pids
from dev.cluster.install import deploy
from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.embedded import cgroups, kubelet_access, replicas, requirements, sysctls, teardown
from dev.embedded.components import (
    apiserver,
    containerd,
    controller_manager,
    etcd,
    kube_proxy,
    kubelet,
    scheduler,
)
from dev.errors import DevClusterError
from dev.images import base_image, images
from dev.net import bridge, dns, firewall, pki, service_names
from dev.network_policy import install as network_policy
from dev.network_policy import nftables
from dev.process import program
from dev.process.parallel import parallel
from dev.process.program import ProcessSpec
from dev.progress import StepProgress
from dev.registry import access, server, signing, token_server
from dev.settings import NODE, REPOSITORY, Settings

# In start order; `down` stops them in reverse order.
NAMES = (
    "registry",
    "registry-tokens",
    "etcd",
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
_NODE_READY_SECONDS = 60


class EmbeddedCluster:
    """The dev cluster on this machine. A lock in the state directory serialises changes."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: StepProgress) -> None:
        self._settings = settings
        self._inherited = inherited
        self._progress = progress

    def up(self, ha: bool | None = None) -> None:
        """Build, install, start what is not running and deploy the service.

        `ha` chooses replicas (or not) for this and later commands; with None, the last choice holds.
        """
        requirements.check()
        requirements.check_port()
        # Fail before a build of several minutes.
        base_image.sources()
        images.requested_pythons(self._inherited)
        with state.locked(self._settings, self._progress):
            state.remove_stale_run_state(self._settings)
            state.record_machine(self._settings)
            pythons = images.offered_pythons(self._settings, self._inherited)
            needs = {**packages.CLUSTER_PACKAGES, **images.programs(pythons)}
            packages.install(self._settings, self._progress, needs)
            size = bridge.mtu()
            bridge.up(size)
            sysctls.apply(self._settings)
            firewall.up()
            nftables.prepare()
            network_policy.install_plugins(self._settings)
            cgroups.make()
            self._start_registry()
            executor, base = self._build(pythons)
            pki.ensure(self._settings, self._progress)
            built = self._start(size, executor, base)
            self._start_backends(ha)
            self._deploy(built)

    def _start_registry(self) -> None:
        settings = self._settings
        with self._progress.step("registry") as step:
            access.key(settings)
            signing.ensure(settings)
            secret = credentials.generated(settings.data / "registry-secret")
            specs = [server.process_spec(settings, secret), token_server.process_spec(settings)]
            step.detail = "started" if self._start_all(specs) else "running"

    def _build(self, pythons: Iterable[str]) -> tuple[Path, str]:
        """Build the missing programs and base images; return Kaniko's executor and the default base image."""
        settings, progress = self._settings, self._progress
        with parallel(progress) as start:
            kubernetes = start(go_build.build, settings, go_build.KUBERNETES, progress)
            executor = start(go_build.build, settings, go_build.KANIKO, progress)
            bases = {
                python: start(images.ensure, settings, images.base_recipe(self._inherited, python), progress)
                for python in pythons
            }
        go_build.link(settings, kubernetes.result())
        references = {python: base.result() for python, base in bases.items()}
        images.record_pythons(settings, references)
        return executor.result(), references[images.PYTHON]

    def _start(self, size: int, executor: Path, base: str) -> images.ImageReferences:
        settings = self._settings
        with self._progress.step("cluster") as step:
            started = self._start_all([etcd.process_spec(settings)])
            pause = images.ensure(settings, images.pause_recipe(), self._progress)
            started += self._start_all([containerd.process_spec(settings, pause, size, self._inherited)])
            started += self._start_all([apiserver.process_spec(settings)])
            kubelet_access.ensure(HttpKubeApi(settings.kubeconfig))
            node_processes = [
                controller_manager.process_spec(settings),
                scheduler.process_spec(settings),
                network_policy.process_spec(settings),
                kubelet.process_spec(settings),
            ]
            node_processes += [
                kube_proxy.process_spec(settings),
                dns.process_spec(settings),
                service_names.process_spec(settings),
            ]
            started += self._start_all(node_processes)
            step.detail = "waiting for the node"
            self._wait_node_ready()
            if problem := pod_pids.problem(pod_pids.limits(HttpKubeApi(settings.kubeconfig))):
                raise DevClusterError(problem)
            step.detail = f"started {', '.join(started)}" if started else "running"
        built = images.ImageReferences(
            pause=pause,
            kaniko=images.ensure(settings, images.kaniko_recipe(executor), self._progress),
            base=base,
        )
        images.record(settings, built)
        return built

    def _start_backends(self, ha: bool | None) -> None:
        if replicas.enabled(self._settings) if ha is None else ha:
            specs = replicas.prepare(self._settings, self._progress)
            with self._progress.step("backends of the replicas") as step:
                started = self._start_all(specs)
                step.detail = f"started {', '.join(started)}" if started else "running"
        if ha is not None:
            replicas.record(self._settings, ha)

    def _deploy(self, built: images.ImageReferences, checkout: Path | None = None) -> None:
        settings, kube = self._settings, HttpKubeApi(self._settings.kubeconfig)
        if replicas.enabled(settings):
            replicas.ensure_secrets(settings, kube)
            deploy(settings, built, self._progress, checkout, [replicas.COMPONENT])
            return
        deploy(settings, built, self._progress, checkout)
        replicas.remove_budget(kube)
        for name in reversed(replicas.NAMES):
            program.stop(settings, name)

    def _start_all(self, specs: list[ProcessSpec]) -> list[str]:
        started = [spec.name for spec in specs if program.start(self._settings, spec)]
        for spec in specs:
            program.wait_ready(self._settings, spec)
        return started

    def _wait_node_ready(self) -> None:
        deadline = time.monotonic() + _NODE_READY_SECONDS
        kube = HttpKubeApi(self._settings.kubeconfig)
        while True:
            try:
                node = kube.get(f"/api/v1/nodes/{NODE}")
            except KubeApiError:
                node = None
            conditions = node["status"].get("conditions", []) if node else []
            ready = [condition for condition in conditions if condition["type"] == "Ready"]
            if ready and ready[0]["status"] == "True":
                return
            if time.monotonic() > deadline:
                reason = ready[0].get("message") if ready else "it has not registered itself"
                log = program.log_file(self._settings, "kubelet")
                raise DevClusterError(
                    f"The node is not ready after {_NODE_READY_SECONDS} s: {reason}. See its log: {log}."
                )
            time.sleep(0.1)

    def deploy(self) -> None:
        """Build the service image if it changed and install it."""
        requirements.check_root()
        with state.locked(self._settings, self._progress):
            self._deploy(images.recorded(self._settings))

    def develop(self) -> None:
        """Run the service from the checkout and restart it when a file changes, until Ctrl-C."""
        requirements.check_root()
        with state.locked(self._settings, self._progress):
            self._deploy(images.recorded(self._settings), REPOSITORY)
        live_reload.follow(self._settings, REPOSITORY, self._progress)

    def down(self, purge: bool) -> None:
        """Stop everything and undo all changes of the machine; with `purge` also remove the state."""
        requirements.check_root()
        if not self._settings.state.exists():
            return
        other = state.other_state_directory(self._settings)
        if other:
            raise DevClusterError(
                f"The running cluster has its state in {other}. Run CREWYARD_STATE={other} make down"
            )
        with state.locked(self._settings, self._progress):
            with self._progress.step("stopping") as step:
                state.remove_stale_run_state(self._settings)
                remaining = teardown.stop(self._settings, (*NAMES, *replicas.NAMES))
                step.detail = "everything has stopped"
            if remaining:
                raise DevClusterError(
                    "These could not be removed. Run `make down` again:\n  " + "\n  ".join(remaining)
                )
            state.remove_machine_record()
            if purge:
                with self._progress.step(f"removing {self._settings.state}"):
                    state.remove(self._settings)

    def env(self) -> dict[str, str]:
        """Return the shell variables."""
        return environment.variables(self._settings, self._inherited)

    def problems(self) -> list[str]:
        """Return the processes that are not running."""
        return [
            f"{name} is not running"
            for name in self._names()
            if program.running(self._settings, name) is None
        ]

    def _names(self) -> tuple[str, ...]:
        return (*NAMES, *replicas.NAMES) if replicas.enabled(self._settings) else NAMES

    def status(self) -> str:
        """Return one line per process."""
        lines = []
        for name in self._names():
            record = program.running(self._settings, name)
            run_state = f"running (process {record.pid})" if record else "not running"
            lines.append(f"{name:24} {run_state:26} {program.log_file(self._settings, name)}")
        if self._settings.kubeconfig.exists():
            lines.append(network_policy.status_line(self._settings))
            lines.append(pod_pids.status_line(HttpKubeApi(self._settings.kubeconfig)))
        return "\n".join(lines)
