"""Why an object waits, as JSON. Pure. Called by the views of runs and deployments."""

from collections.abc import Mapping
from typing import Any


def waiting(cause: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{reason, message, since}` of a stored cause; causes of older versions have no `since`."""
    return {
        "reason": str(cause.get("reason") or ""),
        "message": str(cause.get("message") or ""),
        "since": cause.get("since"),
    }
