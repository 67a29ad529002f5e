"""Label selectors as Kubernetes has them. Pure; called by the ruleset."""

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; the empty one takes all. Raises ValueError on others' operators."""
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
            raise ValueError(f"the operator {operator!r} of a selector is unknown")
