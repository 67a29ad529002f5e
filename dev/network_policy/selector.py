"""Label selectors as Kubernetes has them. Pure; called by the ruleset."""

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; the empty one takes all. Raises ValueError on others' operators."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_satisfied(one, labels) for one in selector.get("matchExpressions") or ())


def _satisfied(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
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
        case other:
            raise ValueError(f"the operator {other!r} of a selector is unknown")
