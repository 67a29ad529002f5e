"""Objects that `make up` creates on an existing cluster: listing, bounds, ownership by label. Pure."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.manifests import CREWS_NAMESPACE, INSTALLED_BY_LABEL
from dev.errors import DevClusterError

NAMESPACES = (SYSTEM_NAMESPACE, CREWS_NAMESPACE)
# Kind → resource for kubectl. Other kinds are not applied, because `down` would not find them.
CLUSTER_KINDS = {
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies.admissionregistration.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    # Before the CRDs: a namespace with objects of just deleted CRDs takes minutes to terminate.
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
    "LimitRange": "limitranges",
    "ResourceQuota": "resourcequotas",
}
# Kinds that hold data or keys, or whose deletion cascades to them: deleted only with PURGE=1.
KINDS_KEPT_BY_DOWN = ("CustomResourceDefinition", "Namespace", "Secret", "PersistentVolumeClaim")
PURGE_WARNING = (
    "This also deletes all Projects, Deployments and Runs of the whole cluster, their stored data, and "
    "everything else in the deleted namespaces."
)
_GENERATED = re.compile(r"-[a-z0-9]{10}$")


@dataclass(frozen=True, order=True)
class ObjectRef:
    """An object by name; `namespace` is empty for cluster-scoped objects."""

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
    """Return the reference of an object."""
    metadata = item["metadata"]
    return ObjectRef(item["kind"], metadata.get("namespace", ""), metadata["name"])


def check_bounds(items: Iterable[dict[str, Any]]) -> None:
    """Raise DevClusterError for objects outside the two namespaces or of kinds that `down` does not find."""
    for ref in map(object_ref, items):
        kinds = NAMESPACED_KINDS if ref.namespace else CLUSTER_KINDS
        if ref.kind not in kinds or (ref.namespace and ref.namespace not in NAMESPACES):
            raise DevClusterError(
                f"The manifests contain {ref}, which must not be applied to a shared cluster."
            )


def has_install_label(item: dict[str, Any]) -> bool:
    """Return whether `make up` created the object."""
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in INSTALLED_BY_LABEL.items())


def foreign_objects(existing: Iterable[dict[str, Any]]) -> tuple[list[str], list[ObjectRef]]:
    """Return the existing namespaces and the other existing objects that lack the install label."""
    foreign = [object_ref(item) for item in existing if not has_install_label(item)]
    return (
        [ref.name for ref in foreign if ref.kind == "Namespace"],
        [ref for ref in foreign if ref.kind != "Namespace"],
    )


def listing(refs: Iterable[ObjectRef]) -> str:
    """Return the objects as text: cluster-scoped first, then by namespace."""
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
    """Return what `down` deletes, in order: workloads first, CRDs last."""
    order = [*NAMESPACED_KINDS, *CLUSTER_KINDS]
    owned = [object_ref(item) for item in installed if has_install_label(item)]
    to_delete = [ref for ref in owned if purge or not _kept_by_down(ref)]
    return sorted(to_delete, key=lambda ref: (order.index(ref.kind), ref))


def _kept_by_down(ref: ObjectRef) -> bool:
    # Crews still run in their namespace, and would reach everything without its NetworkPolicies.
    return ref.kind in KINDS_KEPT_BY_DOWN or (ref.kind, ref.namespace) == ("NetworkPolicy", CREWS_NAMESPACE)


def group_by_kind(refs: Iterable[ObjectRef]) -> list[list[ObjectRef]]:
    """Group neighbours of one kind and namespace, because each kubectl call takes time."""
    return [list(group) for _, group in itertools.groupby(refs, lambda ref: (ref.kind, ref.namespace))]
