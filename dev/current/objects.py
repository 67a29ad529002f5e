"""What `make up` makes on a cluster that is not the ground's own: listed, bounded, told from others. Pure."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.manifests import CREWS_NAMESPACE, MARK
from dev.errors import GroundError

NAMESPACES = (SYSTEM_NAMESPACE, CREWS_NAMESPACE)
# Kind → resource as kubectl takes it. Nothing of another kind is applied, since `down` would not find it.
CLUSTER_KINDS = {
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies.admissionregistration.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    # Before the kinds: a namespace that held objects of kinds that just went ends only after minutes.
    "Namespace": "namespaces",
    "CustomResourceDefinition": "customresourcedefinitions.apiextensions.k8s.io",
}
NAMESPACED_KINDS = {
    "Deployment": "deployments.apps",
    "Service": "services",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "Role": "roles.rbac.authorization.k8s.io",
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
# What holds data or keys, or makes all of it go: it stays unless PURGE=1.
KEPT = ("CustomResourceDefinition", "Namespace", "Secret", "PersistentVolumeClaim")
PURGED = (
    "With them go all Projects, Deployments and Runs of the whole cluster, what is stored of them, and "
    "whatever else is in the namespaces that go."
)
_GENERATED = re.compile(r"-[a-z0-9]{10}$")


@dataclass(frozen=True, order=True)
class Thing:
    """An object by name; `namespace` is empty for what belongs to the whole cluster."""

    kind: str
    namespace: str
    name: str

    @property
    def resource(self) -> str:
        """The kind as kubectl takes it."""
        return (NAMESPACED_KINDS if self.namespace else CLUSTER_KINDS)[self.kind]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def thing(item: dict[str, Any]) -> Thing:
    """The object's name."""
    metadata = item["metadata"]
    return Thing(item["kind"], metadata.get("namespace", ""), metadata["name"])


def bounded(items: Iterable[dict[str, Any]]) -> None:
    """Raises GroundError for anything outside the two namespaces and the kinds that `down` finds again."""
    for one in map(thing, items):
        known = NAMESPACED_KINDS if one.namespace else CLUSTER_KINDS
        if one.kind not in known or (one.namespace and one.namespace not in NAMESPACES):
            raise GroundError(f"The manifests have {one}, which is not applied to a cluster that others use.")


def is_ours(item: dict[str, Any]) -> bool:
    """Whether `make up` made the object."""
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in MARK.items())


def found_there(live: Iterable[dict[str, Any]]) -> tuple[list[str], list[Thing]]:
    """Of the objects that are there already and are not ours: namespaces to be left alone, and the rest."""
    others = [thing(item) for item in live if not is_ours(item)]
    return (
        [one.name for one in others if one.kind == "Namespace"],
        [one for one in others if one.kind != "Namespace"],
    )


def listing(things: Iterable[Thing]) -> str:
    """The objects for a person: those of the whole cluster first, then namespace by namespace."""
    lines = []
    found = sorted(things)
    for place in ("", *NAMESPACES):
        here = [one for one in found if one.namespace == place]
        lines.append(f"  {f'in namespace {place}' if place else 'in the whole cluster'}:")
        for kind in sorted({one.kind for one in here}):
            names = ", ".join(sorted({_shown(one) for one in here if one.kind == kind}))
            lines.append(f"    {kind:32} {names}")
        if not here:
            lines.append("    nothing")
    return "\n".join(lines)


def _shown(one: Thing) -> str:
    return _GENERATED.sub("-…", one.name) if one.kind == "ConfigMap" else one.name


def removal(live: Iterable[dict[str, Any]], purge: bool) -> list[Thing]:
    """What `down` deletes of what is ours, in this order: what runs first, the kinds last."""
    order = [*NAMESPACED_KINDS, *CLUSTER_KINDS]
    ours = [thing(item) for item in live if is_ours(item)]
    going = [one for one in ours if purge or one.kind not in KEPT]
    return sorted(going, key=lambda one: (order.index(one.kind), one))


def grouped(things: Iterable[Thing]) -> list[list[Thing]]:
    """Neighbours of one kind and namespace together, since each call of kubectl takes its time."""
    return [list(group) for _, group in itertools.groupby(things, lambda one: (one.kind, one.namespace))]
