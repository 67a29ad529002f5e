"""What `make up` makes on a cluster that is not the ground's own: listed, bounded, told from others. Pure."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.manifests import CREWS_NAMESPACE, INSTALLED_BY_LABEL
from dev.errors import DevClusterError

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
KINDS_KEPT_BY_DOWN = ("CustomResourceDefinition", "Namespace", "Secret", "PersistentVolumeClaim")
PURGE_WARNING = (
    "With them go all Projects, Deployments and Runs of the whole cluster, what is stored of them, and "
    "whatever else is in the namespaces that go."
)
_GENERATED = re.compile(r"-[a-z0-9]{10}$")


@dataclass(frozen=True, order=True)
class ObjectRef:
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


def object_ref(item: dict[str, Any]) -> ObjectRef:
    """The object's name."""
    metadata = item["metadata"]
    return ObjectRef(item["kind"], metadata.get("namespace", ""), metadata["name"])


def check_bounds(items: Iterable[dict[str, Any]]) -> None:
    """Raises GroundError for anything outside the two namespaces and the kinds that `down` finds again."""
    for ref in map(object_ref, items):
        kinds = NAMESPACED_KINDS if ref.namespace else CLUSTER_KINDS
        if ref.kind not in kinds or (ref.namespace and ref.namespace not in NAMESPACES):
            raise DevClusterError(
                f"The manifests have {ref}, which is not applied to a cluster that others use."
            )


def has_install_label(item: dict[str, Any]) -> bool:
    """Whether `make up` made the object."""
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in INSTALLED_BY_LABEL.items())


def foreign_objects(existing: Iterable[dict[str, Any]]) -> tuple[list[str], list[ObjectRef]]:
    """Of the objects that are there already and are not ours: namespaces to be left alone, and the rest."""
    foreign = [object_ref(item) for item in existing if not has_install_label(item)]
    return (
        [ref.name for ref in foreign if ref.kind == "Namespace"],
        [ref for ref in foreign if ref.kind != "Namespace"],
    )


def listing(refs: Iterable[ObjectRef]) -> str:
    """The objects for a person: those of the whole cluster first, then namespace by namespace."""
    lines = []
    ordered = sorted(refs)
    for namespace in ("", *NAMESPACES):
        in_namespace = [ref for ref in ordered if ref.namespace == namespace]
        lines.append(f"  {f'in namespace {namespace}' if namespace else 'in the whole cluster'}:")
        for kind in sorted({ref.kind for ref in in_namespace}):
            names = ", ".join(sorted({_display_name(ref) for ref in in_namespace if ref.kind == kind}))
            lines.append(f"    {kind:32} {names}")
        if not in_namespace:
            lines.append("    nothing")
    return "\n".join(lines)


def _display_name(ref: ObjectRef) -> str:
    return _GENERATED.sub("-…", ref.name) if ref.kind == "ConfigMap" else ref.name


def deletion_order(installed: Iterable[dict[str, Any]], purge: bool) -> list[ObjectRef]:
    """What `down` deletes of what is ours, in this order: what runs first, the kinds last."""
    order = [*NAMESPACED_KINDS, *CLUSTER_KINDS]
    owned = [object_ref(item) for item in installed if has_install_label(item)]
    to_delete = [ref for ref in owned if purge or ref.kind not in KINDS_KEPT_BY_DOWN]
    return sorted(to_delete, key=lambda ref: (order.index(ref.kind), ref))


def group_by_kind(refs: Iterable[ObjectRef]) -> list[list[ObjectRef]]:
    """Neighbours of one kind and namespace together, since each call of kubectl takes its time."""
    return [list(group) for _, group in itertools.groupby(refs, lambda ref: (ref.kind, ref.namespace))]
