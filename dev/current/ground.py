"""The ground on the current context's cluster: only the service is ours there, the rest is left as it is.

Straight-line shell around the other files. Every change asks for CONFIRM with
the context's name; all that is made carries a label, and `down` takes away
what carries it.
"""

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from dev import cluster_choice, credentials, program, rollout, state
from dev.current import context as contexts
from dev.current import forward, image, manifests, objects, options
from dev.deploy import MANIFESTS, sweep
from dev.errors import GroundError
from dev.kube import KubeError
from dev.kubectl import Kubectl
from dev.progress import Progress
from dev.settings import Settings

_APPLY = ("apply", "--server-side", "--force-conflicts", "--field-manager=crewyard-deploy", "-f", "-")
_DELETE_SECONDS = 300
_SECRETS = ("crewyard-tokens", "crewyard-admin-key")


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
        noted = cluster_choice.noted(self._settings) == cluster_choice.CURRENT
        if pin:
            if not noted:
                self._own.kubeconfig.unlink(missing_ok=True)
            contexts.pin(name, self._own.kubeconfig)
        elif not noted:
            raise GroundError(
                "This state directory has no installation on a context's cluster. Run `make up`."
            )
        kubectl = Kubectl(name, self._own.kubeconfig)
        return kubectl, contexts.read(kubectl)

    def up(self) -> None:
        """Installs the service, once the person has said that this is the cluster."""
        chosen = options.from_environment(self._inherited)
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            if not contexts.new_enough(context.version):
                raise GroundError(
                    f"{context}\n\nCrewyard needs Kubernetes 1.{contexts.MINOR_MINIMUM} or newer."
                )
            preview = self._rendered(kubectl, chosen, chosen.image or manifests.NO_IMAGE)
            spared = self._spared(kubectl, preview)
            again = self._command("up", context)
            contexts.confirm(context, self._inherited, self._plan(chosen, preview, spared), again)
            cluster_choice.note(self._settings, cluster_choice.CURRENT)
            self._install(kubectl, chosen, spared)

    def _command(self, target: str, context: contexts.Context, more: str = "") -> str:
        return (
            f"make {target}{more} {cluster_choice.VARIABLE}={cluster_choice.CURRENT} "
            f"CONFIRM={shlex.quote(context.name)}"
        )

    def _rendered(self, kubectl: Kubectl, chosen: options.Options, service: str) -> list[dict[str, Any]]:
        directory = self._own.configuration
        directory.mkdir(parents=True, exist_ok=True)
        base = os.path.relpath(MANIFESTS / "base", directory)
        text = json.dumps(manifests.kustomization(base, chosen, service), indent=2)
        (directory / "kustomization.yaml").write_text(text)
        made = kubectl.run(
            "create", "--dry-run=client", "--validate=false", "-o", "json", "-k", str(directory)
        )
        items = [*_items(made), *manifests.pull_secrets(chosen)]
        objects.bounded(items)
        return items

    def _spared(self, kubectl: Kubectl, items: list[dict[str, Any]]) -> list[str]:
        """The namespaces that were there before. Raises GroundError where another object of ours was."""
        text = kubectl.run("get", "--ignore-not-found", "-o", "json", "-f", "-", stdin=_list(items))
        namespaces, others = objects.found_there(_items(text))
        if others:
            raise GroundError(
                "These are there already and were not made by `make up`, so they are left alone, and nothing "
                "was done. Change that installation the way it was made, or remove it:\n  "
                + "\n  ".join(map(str, others))
            )
        return namespaces

    def _plan(self, chosen: options.Options, items: list[dict[str, Any]], spared: list[str]) -> str:
        things = [objects.thing(item) for item in items]
        things += [objects.Thing("Secret", credentials.SYSTEM_NAMESPACE, name) for name in _SECRETS]
        made = [one for one in things if not (one.kind == "Namespace" and one.name in spared)]
        text = f"It would create or change these objects and nothing else:\n{objects.listing(made)}"
        if spared:
            text += f"\nThe namespaces {', '.join(spared)} are there already and stay as they are."
        told = chosen.image or f"built from this repository and pushed to {chosen.registry}"
        return f"{text}\nImage of the service: {told}\nImages of crews: {chosen.registry}/crews/<project>"

    def _install(self, kubectl: Kubectl, chosen: options.Options, spared: list[str]) -> None:
        service = image.ensure(self._own, chosen, self._progress)
        items = self._rendered(kubectl, chosen, service)
        wanted = [item for item in items if objects.thing(item).kind != "Namespace"]
        namespaces = [item for item in items if item not in wanted and item["metadata"]["name"] not in spared]
        if namespaces:
            kubectl.run(*_APPLY, stdin=_list(namespaces))
        credentials.ensure(self._own, kubectl, self._progress, manifests.MARK)
        with self._progress.step("kubectl apply") as step:
            kubectl.run(*_APPLY, stdin=_list(wanted), seconds=120)
            step.detail = f"{len(wanted) + len(namespaces)} objects"
        if not chosen.wait:
            self._progress.say("Not waiting for the service (CREWYARD_WAIT=0).")
            return
        rollout.wait(kubectl, self._progress)
        sweep(kubectl)
        if not chosen.public_url:
            forward.start(self._own, contexts.program(self._settings), self._inherited)

    def deploy(self) -> None:
        """Installs the present code: what `up` does."""
        self.up()

    def down(self, purge: bool) -> None:
        """Removes what `up` made; data, keys and kinds only with `purge`."""
        with state.locked(self._settings, self._progress):
            kubectl, context = self._connect(pin=True)
            live = _live(kubectl)
            going = objects.removal(live, purge)
            ours = [objects.thing(item) for item in live if objects.is_ours(item)]
            staying = [one for one in ours if one not in going]
            text = f"It would delete these objects and nothing else:\n{objects.listing(going)}"
            if staying:
                text += (
                    f"\nIt would keep, with all data (PURGE=1 deletes them too):\n{objects.listing(staying)}"
                )
            if purge:
                text += "\nWith them go all Projects, Deployments and Runs, and what is stored of them."
            again = self._command("down", context, " PURGE=1" if purge else "")
            contexts.confirm(context, self._inherited, text, again)
            forward.stop(self._own)
            with self._progress.step("removing") as step:
                for together in objects.grouped(going):
                    step.detail = ", ".join(map(str, together))[:100]
                    _delete(kubectl, together)
                step.detail = f"{len(going)} objects"
            if purge:
                cluster_choice.forget(self._settings)
                shutil.rmtree(self._own.state, ignore_errors=True)

    def env(self) -> dict[str, str]:
        """The variables for a shell: KUBECONFIG has the one context."""
        values = {
            "CREWYARD_STATE": str(self._settings.state),
            cluster_choice.VARIABLE: cluster_choice.CURRENT,
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


def _items(text: str) -> list[dict[str, Any]]:
    """The objects that kubectl printed: any number of documents, each an object or a list of such."""
    found: list[dict[str, Any]] = []
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        found += document["items"] if document["kind"].endswith("List") else [document]
        text = text[end:].lstrip()
    return found


def _list(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _live(kubectl: Kubectl) -> list[dict[str, Any]]:
    """All that carries our label, in the whole cluster and in the two namespaces."""
    label = ",".join(f"{name}={value}" for name, value in manifests.MARK.items())
    looked = ("-l", label, "-o", "json")
    found = _items(kubectl.run("get", ",".join(objects.CLUSTER_KINDS.values()), *looked))
    for namespace in objects.NAMESPACES:
        found += _items(
            kubectl.run("get", "-n", namespace, ",".join(objects.NAMESPACED_KINDS.values()), *looked)
        )
    return found


def _delete(kubectl: Kubectl, together: list[objects.Thing]) -> None:
    one = together[0]
    place = ("-n", one.namespace) if one.namespace else ()
    names = [each.name for each in together]
    limit = ("--ignore-not-found", f"--timeout={_DELETE_SECONDS}s")
    kubectl.run("delete", one.resource, *names, *place, *limit, seconds=_DELETE_SECONDS + 30)


def _states(kubectl: Kubectl) -> dict[str, str | None]:
    try:
        found = kubectl.call("GET", rollout.DEPLOYMENTS)["items"]
    except KubeError as error:
        raise GroundError(f"The cluster does not answer: {error}") from error
    return {one["metadata"]["name"]: rollout.unfinished(one) for one in found}
