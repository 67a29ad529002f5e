"""Placement of the pods of crews: node selectors, tolerations, resources (CREWYARD_PODS). Pure.

Isolation (nodes, runtime class): the installation overrides the Project. Size (requests and limits):
the Project overrides its plan, which overrides all runs. Called by `controller.config` and the pod builders.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
_MAPS = ("nodeSelector",)
_LISTS = ("tolerations", "imagePullSecrets")
_TEXTS = ("runtimeClassName",)


@dataclass(frozen=True)
class NodePlacement:
    """Fields added to a pod's `spec`; `resources` are those of its container."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()
    image_pull_secrets: tuple[Json, ...] = ()
    runtime_class: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def merged_over(self, below: "NodePlacement") -> "NodePlacement":
        """Return both merged; this placement wins."""
        return NodePlacement(
            {**below.node_selector, **self.node_selector},
            (*self.tolerations, *below.tolerations),
            (*self.image_pull_secrets, *below.image_pull_secrets),
            self.runtime_class or below.runtime_class,
            merge_resources(below.resources, self.resources),
        )

    def spec(self, project: Mapping[str, Any] | None = None) -> Json:
        """Return fields of a pod's `spec`, merged over those of `Project.spec.pod`."""
        own = project or {}
        secrets = [*self.image_pull_secrets, *(own.get("imagePullSecrets") or ())]
        fields = {
            "imagePullSecrets": list({entry["name"]: entry for entry in secrets}.values()),
            "nodeSelector": {**(own.get("nodeSelector") or {}), **self.node_selector},
            "tolerations": [*self.tolerations, *(own.get("tolerations") or ())],
            "runtimeClassName": self.runtime_class,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True)
class NodePlacements:
    """Placements of all runs, of all builds, and of runs by plan."""

    run: NodePlacement = field(default_factory=NodePlacement)
    build: NodePlacement = field(default_factory=NodePlacement)
    plans: Mapping[str, NodePlacement] = field(default_factory=dict)

    def for_run(self, plan: str) -> NodePlacement:
        """Return the placement of runs of projects with that plan."""
        special = self.plans.get(plan)
        return special.merged_over(self.run) if special else self.run


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
    _check_fields(settings, ("run", "build", "plans"), "it")
    plans = settings.get("plans", {})
    if not isinstance(plans, dict):
        raise ValueError("plans must be an object of placements by plan")
    return NodePlacements(
        _placement(settings.get("run", {}), "run"),
        _placement(settings.get("build", {}), "build", sized=False),
        {name: _placement(place, f"plans.{name}") for name, place in plans.items()},
    )


def _check_fields(value: Any, names: tuple[str, ...], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be an object with {', '.join(names)}")
    for name in value:
        if name not in names:
            raise ValueError(f"{where} has {name!r}, which is not one of {', '.join(names)}")


def _placement(settings: Any, where: str, sized: bool = True) -> NodePlacement:
    _check_fields(settings, (*_MAPS, *_LISTS, *_TEXTS, *(("resources",) if sized else ())), where)
    for name in _MAPS:
        if not _is_string_map(settings.get(name, {})):
            raise ValueError(f"{where}.{name} must be an object of strings")
    for name in _LISTS:
        entries = settings.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{where}.{name} must be a list of objects")
    if not all(isinstance(entry.get("name"), str) for entry in settings.get("imagePullSecrets", [])):
        raise ValueError(f"{where}.imagePullSecrets must be a list of objects with a name")
    if not isinstance(settings.get("runtimeClassName", ""), str):
        raise ValueError(f"{where}.runtimeClassName must be the name of a RuntimeClass")
    return NodePlacement(
        settings.get("nodeSelector", {}),
        tuple(settings.get("tolerations", [])),
        tuple(settings.get("imagePullSecrets", [])),
        settings.get("runtimeClassName", ""),
        _resources(settings.get("resources", {}), f"{where}.resources"),
    )


def _is_string_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value, str) for value in value.values())


def _resources(settings: Any, where: str) -> dict[str, dict[str, Any]]:
    _check_fields(settings, ("requests", "limits"), where)
    for part, amounts in settings.items():
        if not isinstance(amounts, dict):
            raise ValueError(f"{where}.{part} must be an object of amounts by resource")
        for name, amount in amounts.items():
            if isinstance(amount, bool) or not isinstance(amount, int | float | str):
                raise ValueError(f"{where}.{part}.{name} must be an amount, such as 1 or 500m")
    return dict(settings)
