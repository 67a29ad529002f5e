"""Dev cluster in Docker: kind's node, a registry container, and Crewyard.

Imperative shell around the other modules. `down` stops the containers and keeps their data, `down --purge`
removes them.
"""

import contextlib
import shutil
from collections.abc import Mapping

from dev import state
from dev.cluster import choice, credentials, live_reload, quota, rollout
from dev.cluster.install import delete_unused_config_maps
from dev.cluster.kubectl import KubectlApi
from dev.current.context import kubectl_program as kubectl_program
from dev.errors import DevClusterError
from dev.kind import configuration, docker, engine, installation, nodes, owner
from dev.net import proxy_bypass
from dev.progress import StepProgress
from dev.settings import CREWYARD_URL, Settings


class KindCluster:
    """The dev cluster in this machine's Docker. Local data is in `kind` of the state directory."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: StepProgress) -> None:
        self._settings = settings
        self._own = Settings(settings.state / "kind")
        self._inherited = inherited
        self._progress = progress

    def _kubectl(self) -> KubectlApi:
        return KubectlApi(kubectl_program(self._settings), self._own.kubeconfig)

    def up(self) -> None:
        """Create or start the containers and install the service."""
        reason = engine.problem()
        if reason:
            raise DevClusterError(f"kind cannot run here: {reason}. Use {choice.VARIABLE}=embedded.")
        # Its service has the same address.
        state.check_machine(self._settings)
        with state.locked(self._settings, self._progress):
            kind = nodes.program(self._settings, self._progress)
            kubectl = self._kubectl()
            owner.claim(self._settings.state, self._own.kubeconfig.exists())
            choice.record(self._settings, choice.KIND)
            self._own.logs.mkdir(parents=True, exist_ok=True)
            nodes.ensure(kind, self._own, self._inherited, self._progress)
            with self._progress.step("kube-apiserver"):
                nodes.wait_ready(kubectl)
            with self._progress.step("registry and names"):
                nodes.ensure_registry()
                nodes.ensure_names(kubectl)
            self._deploy(kubectl)

    def deploy(self) -> None:
        """Build the service image and install it."""
        with state.locked(self._settings, self._progress):
            self._check_owner()
            self._deploy(self._kubectl())

    def _check_owner(self) -> None:
        owner.check(self._settings.state, self._own.kubeconfig.exists())

    def _deploy(self, kubectl: KubectlApi) -> None:
        directory = installation.write(self._own, self._inherited, nodes.gateway(), self._progress)
        credentials.ensure(self._own, kubectl, self._progress)
        with self._progress.step("kubectl apply") as step:
            step.detail = f"{len(kubectl.apply('-k', directory))} objects"
        rollout.wait_ready(kubectl, self._progress)
        rollout.wait_reachable(self._progress)
        quota.wait_counted(kubectl, self._progress)
        delete_unused_config_maps(kubectl)

    def develop(self) -> None:
        """Refuse: the checkout is no directory of these nodes."""
        raise DevClusterError(live_reload.UNSUPPORTED)

    def down(self, purge: bool) -> None:
        """Stop the containers; with `purge` remove them and their local data."""
        with state.locked(self._settings, self._progress):
            self._check_owner()
            if not purge:
                with self._progress.step("stopping"):
                    nodes.stop()
                return
            with self._progress.step("removing the cluster and its registry"):
                nodes.remove(nodes.program(self._settings, self._progress))
                shutil.rmtree(self._own.state, ignore_errors=True)
                choice.remove_record(self._settings)

    def env(self) -> dict[str, str]:
        """Return the shell variables."""
        bin_directory = str(self._settings.bin)
        other_entries = [
            entry for entry in self._inherited.get("PATH", "").split(":") if entry and entry != bin_directory
        ]
        values = {
            "CREWYARD_STATE": str(self._settings.state),
            choice.VARIABLE: choice.KIND,
            "KUBECONFIG": str(self._own.kubeconfig),
            "PATH": ":".join([bin_directory, *other_entries]),
            "CREWYARD_URL": CREWYARD_URL,
        }
        values |= proxy_bypass.variables(self._inherited)
        # If Docker fails the other variables are still valid; `problems` reports the failure.
        with contextlib.suppress(DevClusterError):
            values["CREWYARD_HOST_ADDRESS"] = nodes.gateway()
        if self._own.admin_key.exists():
            values["CREWYARD_API_KEY"] = self._own.admin_key.read_text().strip()
        return values

    def problems(self) -> list[str]:
        """Return which containers are not running, or why they cannot be checked."""
        try:
            self._check_owner()
            return [f"container {name} is not running" for name in _containers() if not docker.running(name)]
        except DevClusterError as error:
            return [str(error)]

    def status(self) -> str:
        """Return one line per container. Raises DevClusterError if another state directory owns them."""
        self._check_owner()
        lines = []
        for name in _containers():
            run_state = {True: "running", False: "stopped", None: "does not exist"}[docker.running(name)]
            lines.append(f"{name:24} {run_state:16} docker logs {name}")
        return "\n".join(lines)


def _containers() -> list[str]:
    return [*nodes.names(), configuration.REGISTRY_CONTAINER]
