"""Objects of the installation on the current context's cluster: render, compare, apply, delete with kubectl.

Called by `dev.current.current`, which asks for confirmation between the steps.
"""

import json
import os
from typing import Any

from dev.cluster import credentials, egress
from dev.cluster.install import MANIFESTS
from dev.cluster.kubectl import KubectlApi
from dev.current import manifests, objects
from dev.current.options import InstallOptions
from dev.errors import DevClusterError
from dev.progress import StepProgress
from dev.settings import Settings

_DELETE_TIMEOUT_SECONDS = 300
_SECRETS = ("crewyard-tokens", "crewyard-admin-key")


def render(kubectl: KubectlApi, own: Settings, options: InstallOptions, service: str) -> list[dict[str, Any]]:
    """Return the objects that `make up` applies. Raises DevClusterError for any out of bounds."""
    directory = own.configuration
    directory.mkdir(parents=True, exist_ok=True)
    base = os.path.relpath(MANIFESTS / "base", directory)
    policy = egress.policy(manifests.egress_rules(options))
    (directory / egress.FILE).write_text(json.dumps(policy, indent=2))
    text = json.dumps(manifests.kustomization(base, options, service), indent=2)
    (directory / "kustomization.yaml").write_text(text)
    output = kubectl.run("create", "--dry-run=client", "--validate=false", "-o", "json", "-k", str(directory))
    items = [*_items(output), *manifests.pull_secrets(options)]
    objects.check_bounds(items)
    return items


def existing_namespaces(kubectl: KubectlApi, desired: list[dict[str, Any]]) -> list[str]:
    """Return the namespaces that exist already. Raises DevClusterError if another object does."""
    text = kubectl.run("get", "--ignore-not-found", "-o", "json", "-f", "-", stdin=_list(desired))
    namespaces, foreign = objects.foreign_objects(_items(text))
    if foreign:
        raise DevClusterError(
            "These objects exist already and were not created by `make up`. They are unchanged, and nothing "
            "was installed. Change that installation with the tool that created it, or remove it:\n  "
            + "\n  ".join(map(str, foreign))
        )
    return namespaces


def plan(options: InstallOptions, desired: list[dict[str, Any]], existing: list[str]) -> str:
    """Return what would be created, for a person."""
    refs = [objects.object_ref(item) for item in desired]
    refs += [objects.ObjectRef("Secret", credentials.SYSTEM_NAMESPACE, name) for name in _SECRETS]
    to_apply = [ref for ref in refs if not (ref.kind == "Namespace" and ref.name in existing)]
    text = f"This creates or changes these objects and nothing else:\n{objects.listing(to_apply)}"
    if existing:
        text += f"\nThe namespaces {', '.join(existing)} exist already and stay unchanged."
    image = options.image or f"built from this repository and pushed to {options.registry}"
    return f"{text}\nImage of the service: {image}\nImages of crews: {options.registry}/crews/<project>"


def apply(
    kubectl: KubectlApi,
    own: Settings,
    desired: list[dict[str, Any]],
    existing: list[str],
    progress: StepProgress,
) -> None:
    """Apply the objects except existing namespaces, and create the keys of a new installation."""
    others = [item for item in desired if objects.object_ref(item).kind != "Namespace"]
    namespaces = [item for item in desired if item not in others and item["metadata"]["name"] not in existing]
    if namespaces:
        kubectl.apply("-f", "-", stdin=_list(namespaces))
    credentials.ensure(own, kubectl, progress, manifests.INSTALLED_BY_LABEL)
    with progress.step("kubectl apply") as step:
        kubectl.apply("-f", "-", stdin=_list(others))
        step.detail = f"{len(others) + len(namespaces)} objects"


def _items(text: str) -> list[dict[str, Any]]:
    """Return the objects that kubectl printed: any number of documents, each an object or a list."""
    items: list[dict[str, Any]] = []
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        items += document["items"] if document["kind"].endswith("List") else [document]
        text = text[end:].lstrip()
    return items


def _list(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def list_installed(kubectl: KubectlApi) -> list[dict[str, Any]]:
    """Return all objects with the installation label, cluster-scoped and in the two namespaces."""
    label = ",".join(f"{name}={value}" for name, value in manifests.INSTALLED_BY_LABEL.items())
    selection = ("-l", label, "-o", "json")
    items = _items(kubectl.run("get", ",".join(objects.CLUSTER_KINDS.values()), *selection))
    for namespace in objects.NAMESPACES:
        items += _items(
            kubectl.run("get", "-n", namespace, ",".join(objects.NAMESPACED_KINDS.values()), *selection)
        )
    return items


def delete(kubectl: KubectlApi, refs: list[objects.ObjectRef]) -> None:
    """Delete objects of one kind and namespace and wait until they are gone. Raises KubeApiError."""
    first = refs[0]
    namespace = ("-n", first.namespace) if first.namespace else ()
    names = [ref.name for ref in refs]
    flags = ("--ignore-not-found", f"--timeout={_DELETE_TIMEOUT_SECONDS}s")
    kubectl.run("delete", first.resource, *names, *namespace, *flags, seconds=_DELETE_TIMEOUT_SECONDS + 30)
