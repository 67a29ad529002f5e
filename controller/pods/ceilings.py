"""What a Project may write into its pods: ceilings of resources, and the nodes it may choose. Pure.

A Project's own amounts above the installation's ceiling (CREWYARD_PODS) are lowered to it, and requests to
their limit; a resource, a node label or a toleration that the installation does not name is left out. The
same functions make the pods and the condition that says what was changed, so both agree. Called by the pod
builders and by `controller.project`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from typing import Any

from kubernetes.utils import parse_quantity

Json = dict[str, Any]
Amounts = Mapping[str, Any]
DEFAULT_CEILINGS: Amounts = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"}
"""Where CREWYARD_PODS sets no `max`."""
ANY_VALUE = "*"
"""In the allow-list of node labels; no label has this value."""


@dataclass(frozen=True)
class AllowedNodes:
    """Node labels (with their values) and tolerations that a Project may write; none by default."""

    node_selector: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()

    def selects(self, label: str, value: str) -> bool:
        """Return whether a Project may select nodes by this label and value."""
        values = self.node_selector.get(label, ())
        return value in values or ANY_VALUE in values

    def tolerates(self, toleration: Mapping[str, Any]) -> bool:
        """Return whether a Project may have the toleration: an entry has its key, and its value and effect.

        An entry without value or effect allows all values or effects of that key; none allows all keys.
        """
        return any(
            entry["key"] == toleration.get("key")
            and ("effect" not in entry or entry["effect"] == toleration.get("effect"))
            and (
                "value" not in entry
                or (toleration.get("operator") != "Exists" and entry["value"] == toleration.get("value", ""))
            )
            for entry in self.tolerations
        )


def raise_to(ceilings: Amounts, own: Amounts) -> dict[str, Any]:
    """Return ceilings that are at least the amounts which the installation itself gives."""
    return {
        **ceilings,
        **{
            name: amount
            for name, amount in own.items()
            if name not in ceilings or exceeds(amount, ceilings[name])
        },
    }


def lower_resources(
    requested: Mapping[str, Amounts] | None, ceilings: Amounts, limits: Amounts, where: str
) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Return a Project's requests and limits within the ceilings, and a note for each change.

    `limits` are those of the resources that the Project does not limit.
    """
    lowered: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    greatest = ceilings
    for part in ("limits", "requests"):
        for name, amount in ((requested or {}).get(part) or {}).items():
            place = f"{where}.{part}.{name}"
            if name not in greatest:
                notes.append(f"{place} is left out: the installation does not offer this resource")
            elif _amount(amount) is None:
                notes.append(f"{place} is left out: {str(amount)[:40]!r} is not an amount")
            elif exceeds(amount, greatest[name]):
                bound = "" if greatest[name] == ceilings[name] else "its limit, "
                notes.append(f"{place}: {amount} is lowered to {bound}{greatest[name]}")
                lowered.setdefault(part, {})[name] = greatest[name]
            else:
                lowered.setdefault(part, {})[name] = amount
        # The kube-apiserver refuses a request above the limit.
        greatest = _lower_each(ceilings, {**limits, **lowered.get("limits", {})})
    return lowered, tuple(notes)


def _lower_each(ceilings: Amounts, limits: Amounts) -> Amounts:
    return {
        name: limits[name] if name in limits and exceeds(ceiling, limits[name]) else ceiling
        for name, ceiling in ceilings.items()
    }


def allow_nodes(pod: Mapping[str, Any], allowed: AllowedNodes) -> tuple[Json, tuple[str, ...]]:
    """Return `spec.pod` of a Project with allowed node labels and tolerations only, and a note per change."""
    labels: Mapping[str, str] = pod.get("nodeSelector") or {}
    tolerations: Sequence[Json] = pod.get("tolerations") or ()
    reason = "is left out: the installation does not allow it"
    notes = [
        f"pod.nodeSelector.{label} {reason}"
        for label, value in labels.items()
        if not allowed.selects(label, value)
    ]
    notes += [
        f"pod.tolerations[{position}] {reason}"
        for position, toleration in enumerate(tolerations)
        if not allowed.tolerates(toleration)
    ]
    kept = {
        "nodeSelector": {label: value for label, value in labels.items() if allowed.selects(label, value)},
        "tolerations": [toleration for toleration in tolerations if allowed.tolerates(toleration)],
    }
    return {**pod, **kept}, tuple(notes)


def _amount(text: Any) -> Decimal | None:
    """Return a quantity as a number; None if Kubernetes would reject it or it is negative."""
    try:
        amount = Decimal(parse_quantity(text))
    except (ValueError, DecimalException):
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def is_amount(text: Any) -> bool:
    """Return whether this is a quantity that can be a ceiling."""
    return _amount(text) is not None


def exceeds(amount: Any, ceiling: Any) -> bool:
    """Return whether a quantity is greater than another one."""
    return bool(parse_quantity(amount) > parse_quantity(ceiling))
