"""Where the pods of crews run and what they get there, as the installation says (CREWYARD_PODS). Pure.

What fences pods off (nodes, runtime) is the installation's, over the Project's; what sizes them (requests and
limits) is the Project's, over its plan's, over all runs'. Called by `controller.config` and the pod builders.
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
class Place:
    """What is added to a pod; the fields are those of a pod's `spec`, `resources` its container's."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()
    image_pull_secrets: tuple[Json, ...] = ()
    runtime_class: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def over(self, below: "Place") -> "Place":
        """Both, this one's word before the other's."""
        return Place(
            {**below.node_selector, **self.node_selector},
            (*self.tolerations, *below.tolerations),
            (*self.image_pull_secrets, *below.image_pull_secrets),
            self.runtime_class or below.runtime_class,
            merged(below.resources, self.resources),
        )

    def spec(self, project: Mapping[str, Any] | None = None) -> Json:
        """The fields of a pod's `spec`, with those of `Project.spec.pod` below them."""
        own = project or {}
        secrets = [*self.image_pull_secrets, *(own.get("imagePullSecrets") or ())]
        found = {
            "imagePullSecrets": list({entry["name"]: entry for entry in secrets}.values()),
            "nodeSelector": {**(own.get("nodeSelector") or {}), **self.node_selector},
            "tolerations": [*self.tolerations, *(own.get("tolerations") or ())],
            "runtimeClassName": self.runtime_class,
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True)
class Places:
    """Of all runs, of all builds, and of the runs of projects with a plan."""

    run: Place = field(default_factory=Place)
    build: Place = field(default_factory=Place)
    plans: Mapping[str, Place] = field(default_factory=dict)

    def of_run(self, plan: str) -> Place:
        """What a run of a project with that plan gets."""
        special = self.plans.get(plan)
        return special.over(self.run) if special else self.run


def merged(
    below: Mapping[str, Mapping[str, Any]], above: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Requests and limits of both; what `above` says of a resource holds.

    Where it limits one, a request from below, which may be more than that, is left out.
    """
    limited = above.get("limits") or {}
    requests = {name: amount for name, amount in (below.get("requests") or {}).items() if name not in limited}
    found = {
        "requests": {**requests, **(above.get("requests") or {})},
        "limits": {**(below.get("limits") or {}), **limited},
    }
    return {part: amounts for part, amounts in found.items() if amounts}


def parse_places(text: str) -> Places:
    """The places of CREWYARD_PODS. Raises ValueError that names the field and what it must be."""
    given = json.loads(text) if text.strip() else {}
    _known(given, ("run", "build", "plans"), "it")
    plans = given.get("plans", {})
    if not isinstance(plans, dict):
        raise ValueError("plans must be an object of plans")
    return Places(
        _place(given.get("run", {}), "run"),
        _place(given.get("build", {}), "build", sized=False),
        {name: _place(place, f"plans.{name}") for name, place in plans.items()},
    )


def _known(given: Any, names: tuple[str, ...], where: str) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{where} must be an object with {', '.join(names)}")
    for name in given:
        if name not in names:
            raise ValueError(f"{where} has {name!r}, which is none of {', '.join(names)}")


def _place(given: Any, where: str, sized: bool = True) -> Place:
    _known(given, (*_MAPS, *_LISTS, *_TEXTS, *(("resources",) if sized else ())), where)
    for name in _MAPS:
        if not _texts(given.get(name, {})):
            raise ValueError(f"{where}.{name} must be an object of texts")
    for name in _LISTS:
        found = given.get(name, [])
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise ValueError(f"{where}.{name} must be a list of objects")
    if not all(isinstance(entry.get("name"), str) for entry in given.get("imagePullSecrets", [])):
        raise ValueError(f"{where}.imagePullSecrets must be a list of objects with a name")
    if not isinstance(given.get("runtimeClassName", ""), str):
        raise ValueError(f"{where}.runtimeClassName must be the name of a RuntimeClass")
    return Place(
        given.get("nodeSelector", {}),
        tuple(given.get("tolerations", [])),
        tuple(given.get("imagePullSecrets", [])),
        given.get("runtimeClassName", ""),
        _resources(given.get("resources", {}), f"{where}.resources"),
    )


def _texts(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(value, str) for value in given.values())


def _resources(given: Any, where: str) -> dict[str, dict[str, Any]]:
    _known(given, ("requests", "limits"), where)
    for part, amounts in given.items():
        if not isinstance(amounts, dict):
            raise ValueError(f"{where}.{part} must be an object of amounts by resource")
        for name, amount in amounts.items():
            if isinstance(amount, bool) or not isinstance(amount, int | float | str):
                raise ValueError(f"{where}.{part}.{name} must be an amount, such as 1 or 500m")
    return dict(given)
