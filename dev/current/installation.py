"""What is asked of a cluster that is not the ground's own: rendered, looked at, applied, deleted, by kubectl.

Called by `dev.current.current`, which asks the person in between.
"""

import json
import os
from typing import Any

from dev.cluster import credentials, egress
from dev.cluster.install import MANIFESTS
from dev.cluster.kubectl import Kubectl
from dev.current import manifests, objects
from dev.current.options import Options
from dev.errors import GroundError
from dev.progress import Progress
from dev.settings import Settings

_APPLY = ("apply", "--server-side", "--force-conflicts", "--field-manager=crewyard-deploy", "-f", "-")
_DELETE_SECONDS = 300
_SECRETS = ("crewyard-tokens", "crewyard-admin-key")


def rendered(kubectl: Kubectl, own: Settings, chosen: Options, service: str) -> list[dict[str, Any]]:
    """The objects that `make up` applies; nothing is changed. Raises GroundError for any out of bounds."""
    directory = own.configuration
    directory.mkdir(parents=True, exist_ok=True)
    base = os.path.relpath(MANIFESTS / "base", directory)
    policy = egress.policy(manifests.ways(chosen))
    (directory / egress.FILE).write_text(json.dumps(policy, indent=2))
    text = json.dumps(manifests.kustomization(base, chosen, service), indent=2)
    (directory / "kustomization.yaml").write_text(text)
    made = kubectl.run("create", "--dry-run=client", "--validate=false", "-o", "json", "-k", str(directory))
    found = [*_items(made), *manifests.pull_secrets(chosen)]
    objects.bounded(found)
    return found


def spared(kubectl: Kubectl, wanted: list[dict[str, Any]]) -> list[str]:
    """The namespaces that were there before. Raises GroundError where another object of ours was."""
    text = kubectl.run("get", "--ignore-not-found", "-o", "json", "-f", "-", stdin=_list(wanted))
    namespaces, others = objects.found_there(_items(text))
    if others:
        raise GroundError(
            "These are there already and were not made by `make up`, so they are left alone, and nothing "
            "was done. Change that installation the way it was made, or remove it:\n  "
            + "\n  ".join(map(str, others))
        )
    return namespaces


def plan(chosen: Options, wanted: list[dict[str, Any]], spared: list[str]) -> str:
    """What would be made, for a person."""
    things = [objects.thing(item) for item in wanted]
    things += [objects.Thing("Secret", credentials.SYSTEM_NAMESPACE, name) for name in _SECRETS]
    made = [one for one in things if not (one.kind == "Namespace" and one.name in spared)]
    text = f"It would create or change these objects and nothing else:\n{objects.listing(made)}"
    if spared:
        text += f"\nThe namespaces {', '.join(spared)} are there already and stay as they are."
    told = chosen.image or f"built from this repository and pushed to {chosen.registry}"
    return f"{text}\nImage of the service: {told}\nImages of crews: {chosen.registry}/crews/<project>"


def apply(
    kubectl: Kubectl, own: Settings, wanted: list[dict[str, Any]], spared: list[str], progress: Progress
) -> None:
    """Makes the objects but the spared namespaces, and the keys of a new installation."""
    rest = [item for item in wanted if objects.thing(item).kind != "Namespace"]
    namespaces = [item for item in wanted if item not in rest and item["metadata"]["name"] not in spared]
    if namespaces:
        kubectl.run(*_APPLY, stdin=_list(namespaces))
    credentials.ensure(own, kubectl, progress, manifests.MARK)
    with progress.step("kubectl apply") as step:
        kubectl.run(*_APPLY, stdin=_list(rest), seconds=120)
        step.detail = f"{len(rest) + len(namespaces)} objects"


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


def live(kubectl: Kubectl) -> list[dict[str, Any]]:
    """All that carries our label, in the whole cluster and in the two namespaces."""
    label = ",".join(f"{name}={value}" for name, value in manifests.MARK.items())
    looked = ("-l", label, "-o", "json")
    found = _items(kubectl.run("get", ",".join(objects.CLUSTER_KINDS.values()), *looked))
    for namespace in objects.NAMESPACES:
        found += _items(
            kubectl.run("get", "-n", namespace, ",".join(objects.NAMESPACED_KINDS.values()), *looked)
        )
    return found


def delete(kubectl: Kubectl, together: list[objects.Thing]) -> None:
    """Deletes things of one kind and namespace, and waits until they are gone. Raises KubeError."""
    one = together[0]
    place = ("-n", one.namespace) if one.namespace else ()
    names = [each.name for each in together]
    limit = ("--ignore-not-found", f"--timeout={_DELETE_SECONDS}s")
    kubectl.run("delete", one.resource, *names, *place, *limit, seconds=_DELETE_SECONDS + 30)
