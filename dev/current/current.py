"""Dev cluster on the current context: installs only Crewyard and leaves the rest of that cluster unchanged.

Imperative shell around the other modules. Every change needs CONFIRM with the name of the context. Every
created object carries a label; `down` deletes the objects with that label.
"""

import shlex
import shutil
from collections.abc import Mapping

from dev import state
from dev.cluster import choice, live_reload, quota, rollout
from dev.cluster.install import delete_unused_config_maps
from dev.cluster.kube_client import KubeApiError
from dev.cluster.kubectl import KubectlApi
from dev.current import context as contexts
from dev.current import identity, image, installation, manifests, objects, options, port_forward
from dev.errors import DevClusterError
from dev.net import proxy_bypass
from dev.process import program
from dev.progress import StepProgress
from dev.settings import Settings


class CurrentContextCluster:
    """Crewyard on an existing cluster. Local data is in `current` of the state directory."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: StepProgress) -> None:
        self._settings = settings
        self._own = Settings(settings.state / "current")
        self._inherited = inherited
        self._progress = progress

    def _connect(self, pin: bool) -> tuple[KubectlApi, contexts.ClusterContext]:
        """Return kubectl for the context of the installation; `pin` sets it to the current context."""
        program = contexts.kubectl_program(self._settings)
        recorded = choice.recorded(self._settings) == choice.CURRENT
        if pin:
            if not recorded:
                self._own.kubeconfig.unlink(missing_ok=True)
                identity.remove_record(self._own)
            contexts.pin(program, self._own.kubeconfig)
        elif not recorded:
            raise DevClusterError(
                "This state directory has no installation on the current context. Run `make up`."
            )
        kubectl = KubectlApi(program, self._own.kubeconfig)
        context = contexts.read_context(kubectl)
        identity.check(self._own, context.uid, context.name)
        return kubectl, context

    def up(self) -> None:
        """Install the service after confirmation."""
        install_options = options.from_environment(self._inherited)
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            if not contexts.new_enough(context.version):
                raise DevClusterError(
                    f"{context}\n\nCrewyard needs Kubernetes 1.{contexts.MINOR_MINIMUM} or newer."
                )
            service = install_options.image or manifests.NO_IMAGE
            preview = installation.render(kubectl, self._own, install_options, service)
            existing = installation.existing_namespaces(kubectl, preview)
            plan = installation.plan(install_options, preview, existing)
            contexts.confirm(context, self._inherited, plan, self._command("up", context))
            choice.record(self._settings, choice.CURRENT)
            identity.record(self._own, context.uid)
            service = image.ensure(self._own, install_options, kubectl, self._progress)
            desired = installation.render(kubectl, self._own, install_options, service)
            # Check again: the image build takes time, and another installation may have appeared.
            existing = installation.existing_namespaces(kubectl, desired)
            installation.apply(kubectl, self._own, desired, existing, self._progress)
            if not install_options.wait:
                self._progress.print_line("Not waiting for the service (CREWYARD_WAIT=0).")
                return
            rollout.wait_ready(kubectl, self._progress)
            quota.wait_counted(kubectl, self._progress)
            delete_unused_config_maps(kubectl, manifests.INSTALLED_BY_LABEL)
            if not install_options.public_url:
                port_forward.start(self._own, contexts.kubectl_program(self._settings), self._inherited)

    def _command(self, target: str, context: contexts.ClusterContext, more: str = "") -> str:
        return f"make {target}{more} {choice.VARIABLE}={choice.CURRENT} CONFIRM={shlex.quote(context.name)}"

    def deploy(self) -> None:
        """Install the current code; same as `up`."""
        self.up()

    def develop(self) -> None:
        """Refuse: the checkout is no directory of these nodes."""
        raise DevClusterError(live_reload.UNSUPPORTED)

    def down(self, purge: bool) -> None:
        """Delete what `up` created; delete data, keys and CRDs only with `purge`."""
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            installed = installation.list_installed(kubectl)
            to_delete = objects.deletion_order(installed, purge)
            owned = [objects.object_ref(item) for item in installed if objects.has_install_label(item)]
            to_keep = [ref for ref in owned if ref not in to_delete]
            text = f"This deletes these objects and nothing else:\n{objects.listing(to_delete)}"
            if to_keep:
                text += "\nThis keeps these objects and all data (PURGE=1 deletes them too):\n"
                text += objects.listing(to_keep)
            if purge:
                text += f"\n{objects.PURGE_WARNING}"
            command = self._command("down", context, " PURGE=1" if purge else "")
            contexts.confirm(context, self._inherited, text, command)
            port_forward.stop(self._own)
            with self._progress.step("removing") as step:
                for group in objects.group_by_kind(to_delete):
                    step.detail = ", ".join(map(str, group))[:100]
                    installation.delete(kubectl, group)
                step.detail = f"{len(to_delete)} objects"
            if purge:
                choice.remove_record(self._settings)
                shutil.rmtree(self._own.state, ignore_errors=True)

    def env(self) -> dict[str, str]:
        """Return the shell variables; KUBECONFIG contains only the one context."""
        values = {
            "CREWYARD_STATE": str(self._settings.state),
            choice.VARIABLE: choice.CURRENT,
            "KUBECONFIG": str(self._own.kubeconfig),
            "CREWYARD_URL": port_forward.service_url(self._own, self._inherited),
        }
        values |= proxy_bypass.variables(self._inherited)
        host = self._inherited.get("CREWYARD_HOST_ADDRESS")
        if host:
            values |= {"CREWYARD_HOST_ADDRESS": host, "CREWYARD_HOST_NAME": host}
        if self._own.admin_key.exists():
            values["CREWYARD_API_KEY"] = self._own.admin_key.read_text().strip()
        return values

    def problems(self) -> list[str]:
        """Return which Deployments are not ready, and whether port forwarding stopped."""
        try:
            kubectl, _ = self._connect(pin=False)
            states = _states(kubectl)
        except DevClusterError as error:
            return [str(error)]
        problems = [f"{name} {state}" for name, state in states.items() if state]
        if not states:
            problems.append("the service is not installed")
        if port_forward.was_started(self._own) and program.running(self._own, port_forward.NAME) is None:
            problems.append("the port forward of the service is not running")
        return problems

    def status(self) -> str:
        """Return the cluster, and one line per Deployment of the service."""
        kubectl, context = self._connect(pin=False)
        lines = [f"{name:24} {state or 'running'}" for name, state in _states(kubectl).items()]
        url = port_forward.service_url(self._own, self._inherited)
        return "\n".join([str(context), f"address  {url}", *lines])


def _states(kubectl: KubectlApi) -> dict[str, str | None]:
    try:
        deployments = kubectl.call("GET", rollout.DEPLOYMENTS)["items"]
    except KubeApiError as error:
        raise DevClusterError(f"The cluster does not respond: {error}") from error
    return {deployment["metadata"]["name"]: rollout.pending_state(deployment) for deployment in deployments}
