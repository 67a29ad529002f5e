"""Label selectors of Kubernetes. Pure; called by the ruleset."""

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector; the empty one matches all. Raises ValueError."""
    match_labels: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in match_labels.items()):
        return False
    return all(
        _expression_matches(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _expression_matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = str(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case operator:
            raise ValueError(f"unknown selector operator {operator!r}")
