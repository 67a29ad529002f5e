"""Connections of a Project's runs within the cluster: `run.egress` within the installation's list. Pure.

A NetworkPolicy knows no Services, so an entry of the installation's list that names a Service also has
the labels and ports of its pods. Called by `controller.config` and `controller.project`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crds.objects import Project
from crds.runs import labels as run_labels

Json = dict[str, Any]
_FIELDS = ("namespace", "service", "podSelector", "ports")
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_LABEL_NAME = re.compile(run_labels.NAME_PATTERN, re.ASCII)
_LABEL_VALUE = re.compile(run_labels.VALUE_PATTERN, re.ASCII)


@dataclass(frozen=True)
class EgressTarget:
    """Pods of a namespace that runs may connect to: all or those with labels, at all ports or some."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    service: str = ""
    """The name by which a Project may ask for them."""

    def covers(self, requested: Mapping[str, Any]) -> bool:
        """Return whether an entry of `run.egress` asks for nothing beyond this target."""
        if requested["namespace"] != self.namespace:
            return False
        if "service" in requested:
            of_same_pods = requested["service"] == self.service
        else:
            of_same_pods = self.labels.items() <= _labels(requested).items()
        return of_same_pods and (not self.ports or set(requested.get("ports") or ()) <= set(self.ports))

    def pod_labels(self, requested: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the labels of the pods that an entry covered by this target asks for."""
        return self.labels if "service" in requested else _labels(requested)

    def rule(self, requested: Mapping[str, Any]) -> Json:
        """Return the egress rule of a NetworkPolicy for an entry that this target covers."""
        labels = self.pod_labels(requested)
        peer: Json = {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: self.namespace}}}
        if labels:
            peer["podSelector"] = {"matchLabels": dict(labels)}
        ports = requested.get("ports") or self.ports
        return {
            "to": [peer],
            **({"ports": [{"protocol": "TCP", "port": port} for port in ports]} if ports else {}),
        }


def allowed_rules(project: Project, allowed: Sequence[EgressTarget]) -> tuple[list[Json], tuple[str, ...]]:
    """Return the egress rules that a Project gets, and a note for each entry that is left out."""
    rules: list[Json] = []
    refused: list[str] = []
    for position, requested in enumerate((project.spec.get("run") or {}).get("egress") or ()):
        target = next((target for target in allowed if target.covers(requested)), None)
        if target is None:
            reason = "the installation does not allow it"
        else:
            reason = _label_problem(target.pod_labels(requested))
        if target is None or reason:
            refused.append(f"run.egress[{position}] ({_text(requested)}) is left out: {reason}")
        else:
            rules.append(target.rule(requested))
    return rules, tuple(refused)


def _label_problem(labels: Mapping[str, str]) -> str:
    """Return what the kube-apiserver would refuse in the labels; empty if it accepts them."""
    for name, value in labels.items():
        if not _LABEL_NAME.fullmatch(name):
            return f"{name!r} is not the name of a label"
        if not _LABEL_VALUE.fullmatch(value):
            return f"{value!r} is not the value of a label"
    return ""


def _labels(entry: Mapping[str, Any]) -> Mapping[str, str]:
    return (entry.get("podSelector") or {}).get("matchLabels") or {}


def _text(requested: Mapping[str, Any]) -> str:
    labels = ",".join(f"{name}={value}" for name, value in sorted(_labels(requested).items()))
    place = f"{requested['namespace']}/{requested.get('service') or labels or '*'}"
    ports = ",".join(map(str, requested.get("ports") or ()))
    return f"{place}:{ports}" if ports else place


def parse_targets(text: str) -> tuple[EgressTarget, ...]:
    """Parse CREWYARD_RUN_EGRESS. Raises ValueError that names the entry and the field."""
    entries = json.loads(text) if text.strip() else []
    if not isinstance(entries, list):
        raise ValueError('must be a JSON list, such as [{"namespace": "models", "ports": [11434]}]')
    return tuple(_target(entry, f"[{position}]") for position, entry in enumerate(entries))


def _target(entry: Any, where: str) -> EgressTarget:
    if not isinstance(entry, dict) or not isinstance(entry.get("namespace"), str) or not entry["namespace"]:
        raise ValueError(f"{where} must be an object with namespace and, if needed, {', '.join(_FIELDS[1:])}")
    for name in entry:
        if name not in _FIELDS:
            raise ValueError(f"{where} has {name!r}, which is not one of {', '.join(_FIELDS)}")
    if not isinstance(entry.get("service", ""), str):
        raise ValueError(f"{where}.service must be the name of a Service")
    selector = entry.get("podSelector", {})
    labels = selector.get("matchLabels", {}) if isinstance(selector, dict) else None
    if (
        not isinstance(labels, dict)
        or set(selector) - {"matchLabels"}
        or not all(isinstance(value, str) for value in labels.values())
    ):
        raise ValueError(f"{where}.podSelector must be an object with matchLabels, an object of strings")
    if entry.get("service") and not labels:
        raise ValueError(f"{where}.podSelector.matchLabels must have the labels of the Service's pods")
    ports = entry.get("ports", [])
    if not isinstance(ports, list) or not all(type(port) is int and 1 <= port <= 65535 for port in ports):
        raise ValueError(f"{where}.ports must be a list of numbers from 1 to 65535")
    return EgressTarget(entry["namespace"], labels, tuple(ports), entry.get("service", ""))
