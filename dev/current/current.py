"""The ground on the current context's cluster: only the service is ours there, the rest is left as it is.

Straight-line shell around the other files. Every change asks for CONFIRM with
the context's name; all that is made carries a label, and `down` takes away
what carries it.
"""

import shlex
import shutil
from collections.abc import Mapping

from dev import state
from dev.cluster import choice, rollout
from dev.cluster.install import sweep
from dev.cluster.kube_client import KubeError
from dev.cluster.kubectl import Kubectl
from dev.current import context as contexts
from dev.current import forward, identity, image, installation, manifests, objects, options
from dev.errors import GroundError
from dev.process import program
from dev.progress import Progress
from dev.settings import Settings


class Current:
    """The service on somebody's cluster. Kept of it here: `current` of the state directory."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str], progress: Progress) -> None:
        self._settings = settings
        self._own = Settings(settings.state / "current")
        self._inherited = inherited
        self._progress = progress

    def _connect(self, pin: bool) -> tuple[Kubectl, contexts.Context]:
        """kubectl at the context of the installation; `pin` makes that the current one."""
        name = contexts.program(self._settings)
        noted = choice.noted(self._settings) == choice.CURRENT
        if pin:
            if not noted:
                self._own.kubeconfig.unlink(missing_ok=True)
                identity.forget(self._own)
            contexts.pin(name, self._own.kubeconfig)
        elif not noted:
            raise GroundError(
                "This state directory has no installation on a context's cluster. Run `make up`."
            )
        kubectl = Kubectl(name, self._own.kubeconfig)
        context = contexts.read(kubectl)
        identity.check(self._own, context.uid, context.name)
        return kubectl, context

    def up(self) -> None:
        """Installs the service, once the person has said that this is the cluster."""
        chosen = options.from_environment(self._inherited)
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            if not contexts.new_enough(context.version):
                raise GroundError(
                    f"{context}\n\nCrewyard needs Kubernetes 1.{contexts.MINOR_MINIMUM} or newer."
                )
            service = chosen.image or manifests.NO_IMAGE
            preview = installation.rendered(kubectl, self._own, chosen, service)
            spared = installation.spared(kubectl, preview)
            plan = installation.plan(chosen, preview, spared)
            contexts.confirm(context, self._inherited, plan, self._command("up", context))
            choice.note(self._settings, choice.CURRENT)
            identity.note(self._own, context.uid)
            service = image.ensure(self._own, chosen, self._progress)
            wanted = installation.rendered(kubectl, self._own, chosen, service)
            # Again: an image takes its time, and somebody may have installed meanwhile.
            spared = installation.spared(kubectl, wanted)
            installation.apply(kubectl, self._own, wanted, spared, self._progress)
            if not chosen.wait:
                self._progress.say("Not waiting for the service (CREWYARD_WAIT=0).")
                return
            rollout.wait(kubectl, self._progress)
            sweep(kubectl, manifests.MARK)
            if not chosen.public_url:
                forward.start(self._own, contexts.program(self._settings), self._inherited)

    def _command(self, target: str, context: contexts.Context, more: str = "") -> str:
        return f"make {target}{more} {choice.VARIABLE}={choice.CURRENT} CONFIRM={shlex.quote(context.name)}"

    def deploy(self) -> None:
        """Installs the present code: what `up` does."""
        self.up()

    def down(self, purge: bool) -> None:
        """Removes what `up` made; data, keys and kinds only with `purge`."""
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            live = installation.live(kubectl)
            going = objects.removal(live, purge)
            ours = [objects.thing(item) for item in live if objects.is_ours(item)]
            staying = [one for one in ours if one not in going]
            text = f"It would delete these objects and nothing else:\n{objects.listing(going)}"
            if staying:
                text += (
                    f"\nIt would keep, with all data (PURGE=1 deletes them too):\n{objects.listing(staying)}"
                )
            if purge:
                text += f"\n{objects.PURGED}"
            again = self._command("down", context, " PURGE=1" if purge else "")
            contexts.confirm(context, self._inherited, text, again)
            forward.stop(self._own)
            with self._progress.step("removing") as step:
                for together in objects.grouped(going):
                    step.detail = ", ".join(map(str, together))[:100]
                    installation.delete(kubectl, together)
                step.detail = f"{len(going)} objects"
            if purge:
                choice.forget(self._settings)
                shutil.rmtree(self._own.state, ignore_errors=True)

    def env(self) -> dict[str, str]:
        """The variables for a shell: KUBECONFIG has the one context."""
        values = {
            "CREWYARD_STATE": str(self._settings.state),
            choice.VARIABLE: choice.CURRENT,
            "KUBECONFIG": str(self._own.kubeconfig),
            "CREWYARD_URL": forward.address(self._own, self._inherited),
        }
        host = self._inherited.get("CREWYARD_HOST_ADDRESS")
        if host:
            values |= {"CREWYARD_HOST_ADDRESS": host, "CREWYARD_HOST_NAME": host}
        if self._own.admin_key.exists():
            values["CREWYARD_API_KEY"] = self._own.admin_key.read_text().strip()
        return values

    def problems(self) -> list[str]:
        """What of the service is not ready, and whether its port is forwarded."""
        try:
            kubectl, _ = self._connect(pin=False)
            states = _states(kubectl)
        except GroundError as error:
            return [str(error)]
        found = [f"{name} {state}" for name, state in states.items() if state]
        if not states:
            found.append("the service is not installed")
        if forward.wanted(self._own) and program.running(self._own, forward.NAME) is None:
            found.append("the port of the service is not forwarded")
        return found

    def status(self) -> str:
        """The cluster, and a line per Deployment of the service."""
        kubectl, context = self._connect(pin=False)
        lines = [f"{name:24} {state or 'runs'}" for name, state in _states(kubectl).items()]
        url = forward.address(self._own, self._inherited)
        return "\n".join([str(context), f"address  {url}", *lines])


def _states(kubectl: Kubectl) -> dict[str, str | None]:
    try:
        found = kubectl.call("GET", rollout.DEPLOYMENTS)["items"]
    except KubeError as error:
        raise GroundError(f"The cluster does not answer: {error}") from error
    return {one["metadata"]["name"]: rollout.unfinished(one) for one in found}
