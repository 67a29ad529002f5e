"""The ground in Docker: kind's node, a registry beside it, and the service.

Straight-line shell around the other files. `down` stops the containers and
keeps what is in them, `down --purge` removes them.
"""

import contextlib
import shutil
from collections.abc import Mapping

from dev import state
from dev.cluster import choice, credentials, rollout
from dev.cluster.install import delete_unused_config_maps
from dev.cluster.kubectl import KubectlApi
from dev.current.context import kubectl_program as kubectl_program
from dev.errors import DevClusterError
from dev.kind import configuration, docker, engine, installation, nodes, owner
from dev.progress import Progress
from dev.settings import CREWYARD_URL, Settings

_CONTAINERS = (configuration.NODE, configuration.REGISTRY_CONTAINER)
_APPLY = ("apply", "--server-side", "--force-conflicts", "--field-manager=crewyard-deploy", "-k")


class KindCluster:
    """The ground of this machine's Docker. Kept of it beside Docker: `kind` of the state directory."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: Progress) -> None:
        self._settings = settings
        self._own = Settings(settings.state / "kind")
        self._inherited = inherited
        self._progress = progress

    def _kubectl(self) -> KubectlApi:
        return KubectlApi(kubectl_program(self._settings), self._own.kubeconfig)

    def up(self) -> None:
        """Makes or starts the containers and installs the service."""
        reason = engine.problem()
        if reason:
            raise DevClusterError(f"kind cannot run here: {reason}. Use {choice.VARIABLE}=embedded.")
        with state.locked(self._settings, self._progress):
            kind = nodes.program(self._settings, self._progress)
            kubectl = self._kubectl()
            owner.claim(self._settings.state, self._own.kubeconfig.exists())
            choice.record(self._settings, choice.KIND)
            self._own.logs.mkdir(parents=True, exist_ok=True)
            nodes.ensure(kind, self._own, self._progress)
            with self._progress.step("registry and names"):
                nodes.ensure_registry()
                nodes.ensure_names(kubectl)
            self._deploy(kubectl)

    def deploy(self) -> None:
        """Builds the service's image and installs it."""
        with state.locked(self._settings, self._progress):
            self._check_owner()
            self._deploy(self._kubectl())

    def _check_owner(self) -> None:
        owner.check(self._settings.state, self._own.kubeconfig.exists())

    def _deploy(self, kubectl: KubectlApi) -> None:
        directory = installation.write(self._own, nodes.gateway(), self._progress)
        credentials.ensure(self._own, kubectl, self._progress)
        with self._progress.step("kubectl apply") as step:
            step.detail = f"{len(kubectl.run(*_APPLY, directory, seconds=120).splitlines())} objects"
        rollout.wait_ready(kubectl, self._progress)
        delete_unused_config_maps(kubectl)

    def down(self, purge: bool) -> None:
        """Stops the containers; with `purge` removes them and what this machine keeps of them."""
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
        """The variables for a shell."""
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
        # Without Docker's answer the rest still holds; `problems` tells.
        with contextlib.suppress(DevClusterError):
            values["CREWYARD_HOST_ADDRESS"] = nodes.gateway()
        if self._own.admin_key.exists():
            values["CREWYARD_API_KEY"] = self._own.admin_key.read_text().strip()
        return values

    def problems(self) -> list[str]:
        """The containers that do not run, or why they are not this directory's, or not to be seen."""
        try:
            self._check_owner()
            return [f"container {name} does not run" for name in _CONTAINERS if not docker.running(name)]
        except DevClusterError as error:
            return [str(error)]

    def status(self) -> str:
        """A line per container. Raises GroundError where they belong to another state directory."""
        self._check_owner()
        lines = []
        for name in _CONTAINERS:
            run_state = {True: "runs", False: "is stopped", None: "is not there"}[docker.running(name)]
            lines.append(f"{name:24} {run_state:16} docker logs {name}")
        return "\n".join(lines)
