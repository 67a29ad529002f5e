"""Placement of the pods of crews: nodes, queue labels, priority, resources (CREWYARD_PODS). Pure.

Isolation and order (nodes, runtime class, labels, priority): the installation overrides the Project.
Size (requests and limits): the Project overrides its plan, which overrides all runs, up to the ceilings
of `max`. Called by `controller.config`, the pod builders and `controller.project`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.pods.ceilings import (
    DEFAULT_CEILINGS,
    AllowedNodes,
    allow_nodes,
    exceeds,
    is_amount,
    lower_resources,
    raise_to,
)
from crds import names
from crds.objects import Project

Json = dict[str, Any]
_MAPS = ("nodeSelector", "labels", "annotations")
_LISTS = ("tolerations", "imagePullSecrets")
_CLASSES = {"runtimeClassName": "a RuntimeClass", "priorityClassName": "a PriorityClass"}
_FLAGS = ("hostUsers",)
_OWN_PREFIXES = (f"{names.GROUP}/", "app.kubernetes.io/")
RUN_LIMITS = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "3Gi"}
BUILD_LIMITS = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}
"""Of Kaniko. Both where nothing else sets a limit."""
NOT_DISRUPTED = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations of pods that have a run or a build: a node's autoscaler waits for their end."""


@dataclass(frozen=True)
class NodePlacement:
    """Fields added to a pod's `metadata` and `spec`; `resources` are those of its container."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()
    image_pull_secrets: tuple[Json, ...] = ()
    runtime_class: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    """The greatest amounts that a Project may set; for a resource that is missing, the default."""
    build_max: Mapping[str, Any] = field(default_factory=dict)
    """The same for the builds of a plan's projects."""
    host_users: bool | None = None
    """False: in a user namespace, the pod's users are others of the node; None: as Kubernetes does."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Such as the queue and the priority of Kueue."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority_class: str = ""

    def merged_over(self, below: "NodePlacement") -> "NodePlacement":
        """Return both merged; this placement wins."""
        return NodePlacement(
            {**below.node_selector, **self.node_selector},
            (*self.tolerations, *below.tolerations),
            (*self.image_pull_secrets, *below.image_pull_secrets),
            self.runtime_class or below.runtime_class,
            merge_resources(below.resources, self.resources),
            {**below.max, **self.max},
            host_users=below.host_users if self.host_users is None else self.host_users,
            labels={**below.labels, **self.labels},
            annotations={**below.annotations, **self.annotations},
            priority_class=self.priority_class or below.priority_class,
        )

    def ceilings(self) -> dict[str, Any]:
        """Return the ceiling of each resource that a Project may set: never below the installation's own."""
        own = {**(self.resources.get("requests") or {}), **(self.resources.get("limits") or {})}
        return raise_to({**DEFAULT_CEILINGS, **self.max}, own)

    def run_limits(self) -> dict[str, Any]:
        """Return the limits of a run whose Project sets none: at least what the installation requests."""
        own = self.resources
        return {**raise_to(RUN_LIMITS, own.get("requests") or {}), **(own.get("limits") or {})}

    def spec(self, project: Mapping[str, Any] | None = None) -> Json:
        """Return fields of a pod's `spec`, merged over those of `Project.spec.pod`."""
        own = project or {}
        secrets = [*self.image_pull_secrets, *(own.get("imagePullSecrets") or ())]
        fields = {
            "imagePullSecrets": list({entry["name"]: entry for entry in secrets}.values()),
            "nodeSelector": {**(own.get("nodeSelector") or {}), **self.node_selector},
            "tolerations": [*self.tolerations, *(own.get("tolerations") or ())],
            "runtimeClassName": self.runtime_class,
            "priorityClassName": self.priority_class,
        }
        users = {} if self.host_users is None else {"hostUsers": self.host_users}
        return {**{name: value for name, value in fields.items() if value}, **users}


@dataclass(frozen=True)
class NodePlacements:
    """Placements of all runs, of all builds, and of runs by plan."""

    run: NodePlacement = field(default_factory=NodePlacement)
    build: NodePlacement = field(default_factory=NodePlacement)
    plans: Mapping[str, NodePlacement] = field(default_factory=dict)
    allowed: AllowedNodes = field(default_factory=AllowedNodes)
    """Nodes that a Project may choose within the placements above."""

    def for_run(self, plan: str) -> NodePlacement:
        """Return the placement of runs of projects with that plan."""
        special = self.plans.get(plan)
        return special.merged_over(self.run) if special else self.run

    def run_resources(self, project: Project) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
        """Return the Project's resources of runs within its plan's ceilings, and a note per change."""
        requested = (project.spec.get("run") or {}).get("resources")
        place = self.for_run(project.plan)
        return lower_resources(requested, place.ceilings(), place.run_limits(), "run.resources")

    def build_resources(self, project: Project) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
        """Return the Project's resources of builds within its plan's ceilings, and a note per change."""
        requested = (project.spec.get("build") or {}).get("resources")
        plan = self.plans.get(project.plan, NodePlacement())
        ceilings = {**DEFAULT_CEILINGS, **self.build.max, **plan.build_max}
        return lower_resources(requested, ceilings, BUILD_LIMITS, "build.resources")

    def pod_fields(self, project: Project) -> tuple[Json, tuple[str, ...]]:
        """Return `spec.pod` of the Project with allowed nodes only, and a note per change."""
        return allow_nodes(project.spec.get("pod") or {}, self.allowed)

    def notes(self, project: Project) -> tuple[str, ...]:
        """Return what the pods of a Project get less than it asks for, one sentence each."""
        return (
            *self.run_resources(project)[1],
            *self.build_resources(project)[1],
            *self.pod_fields(project)[1],
        )


def merge_resources(
    below: Mapping[str, Mapping[str, Any]], above: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Merge requests and limits; `above` wins per resource.

    If `above` limits a resource, the request of `below` is dropped: it may exceed the limit.
    """
    limited = above.get("limits") or {}
    requests = {name: amount for name, amount in (below.get("requests") or {}).items() if name not in limited}
    merged = {
        "requests": {**requests, **(above.get("requests") or {})},
        "limits": {**(below.get("limits") or {}), **limited},
    }
    return {part: amounts for part, amounts in merged.items() if amounts}


def parse_placements(text: str) -> NodePlacements:
    """Parse CREWYARD_PODS. Raises ValueError that names the field and its valid values."""
    settings = json.loads(text) if text.strip() else {}
    _check_fields(settings, ("run", "build", "plans", "allowed"), "it")
    plans = settings.get("plans", {})
    if not isinstance(plans, dict):
        raise ValueError("plans must be an object of placements by plan")
    placements = NodePlacements(
        _placement(settings.get("run", {}), "run"),
        _placement(settings.get("build", {}), "build", sized=False),
        {name: _placement(place, f"plans.{name}", of_plan=True) for name, place in plans.items()},
        _allowed(settings.get("allowed", {})),
    )
    _check_requests(placements.run, "run")
    for plan in plans:
        _check_requests(placements.for_run(plan), f"plans.{plan}")
    return placements


def _check_requests(place: NodePlacement, where: str) -> None:
    """Raise ValueError if the kube-apiserver would refuse each pod: it requests more than its limit."""
    requests, limits = (place.resources.get(part) or {} for part in ("requests", "limits"))
    for name, amount in requests.items():
        if name in limits and exceeds(amount, limits[name]):
            raise ValueError(
                f"{where}.resources.requests.{name} is {amount}, above its limit {limits[name]}; "
                f"lower it, or raise {where}.resources.limits.{name}"
            )


def _allowed(settings: Any) -> AllowedNodes:
    _check_fields(settings, ("nodeSelector", "tolerations"), "allowed")
    labels, tolerations = settings.get("nodeSelector", {}), settings.get("tolerations", [])
    if not isinstance(labels, dict) or not all(
        isinstance(values, list) and all(isinstance(value, str) for value in values)
        for values in labels.values()
    ):
        raise ValueError(
            'allowed.nodeSelector must be an object of lists, such as {"disk": ["ssd"], "zone": ["*"]}'
        )
    if not isinstance(tolerations, list) or not all(map(_is_allowed_toleration, tolerations)):
        raise ValueError(
            "allowed.tolerations must be a list of objects with key and, if needed, value, effect"
        )
    return AllowedNodes({label: tuple(values) for label, values in labels.items()}, tuple(tolerations))


def _is_allowed_toleration(entry: Any) -> bool:
    # Without a key, a toleration is one for all taints.
    return _is_string_map(entry) and bool(entry.get("key")) and set(entry) <= {"key", "value", "effect"}


def _check_fields(value: Any, fields: tuple[str, ...], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be an object with {', '.join(fields)}")
    for name in value:
        if name not in fields:
            raise ValueError(f"{where} has {name!r}, which is not one of {', '.join(fields)}")


def _placement(settings: Any, where: str, sized: bool = True, of_plan: bool = False) -> NodePlacement:
    sizes = ("max", *(("resources",) if sized else ()), *(("buildMax",) if of_plan else ()))
    _check_fields(settings, (*_MAPS, *_LISTS, *_CLASSES, *_FLAGS, *sizes), where)
    for name in _MAPS:
        if not _is_string_map(settings.get(name, {})):
            raise ValueError(f"{where}.{name} must be an object of strings")
    for name in ("labels", "annotations"):
        if own := [key for key in settings.get(name, {}) if key.startswith(_OWN_PREFIXES)]:
            raise ValueError(f"{where}.{name} has {own[0]!r}, which the controller sets; remove it")
    for name in _LISTS:
        entries = settings.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{where}.{name} must be a list of objects")
    if not all(isinstance(entry.get("name"), str) for entry in settings.get("imagePullSecrets", [])):
        raise ValueError(f"{where}.imagePullSecrets must be a list of objects with a name")
    for name, kind in _CLASSES.items():
        if not isinstance(settings.get(name, ""), str):
            raise ValueError(f"{where}.{name} must be the name of {kind}")
    if not isinstance(settings.get("hostUsers"), bool | None):
        raise ValueError(f"{where}.hostUsers must be true or false")
    return NodePlacement(
        settings.get("nodeSelector", {}),
        tuple(settings.get("tolerations", [])),
        tuple(settings.get("imagePullSecrets", [])),
        settings.get("runtimeClassName", ""),
        _resources(settings.get("resources", {}), f"{where}.resources"),
        _amounts(settings.get("max", {}), f"{where}.max"),
        _amounts(settings.get("buildMax", {}), f"{where}.buildMax"),
        settings.get("hostUsers"),
        settings.get("labels", {}),
        settings.get("annotations", {}),
        settings.get("priorityClassName", ""),
    )


def _is_string_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value, str) for value in value.values())


def _resources(settings: Any, where: str) -> dict[str, dict[str, Any]]:
    _check_fields(settings, ("requests", "limits"), where)
    return {part: _amounts(amounts, f"{where}.{part}") for part, amounts in settings.items()}


def _amounts(settings: Any, where: str) -> dict[str, Any]:
    if not isinstance(settings, dict):
        raise ValueError(f"{where} must be an object of amounts by resource")
    for name, amount in settings.items():
        if isinstance(amount, bool) or not is_amount(amount):
            raise ValueError(f"{where}.{name} must be an amount, such as 500m or 16Gi")
    return dict(settings)
