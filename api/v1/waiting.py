"""Why an object waits, as JSON. Pure. Called by the views of runs and deployments."""

from collections.abc import Mapping
from typing import Any


def waiting(cause: Mapping[str, Any], position: int | None = None) -> dict[str, Any]:
    """Return `{reason, message, since}` of a stored cause; causes of older versions have no `since`.

    The message ends with the `position` in a queue, which no status contains.
    """
    message = str(cause.get("message") or "")
    return {
        "reason": str(cause.get("reason") or ""),
        "message": message if position is None else f"{message} Position {position}.".lstrip(),
        "since": cause.get("since"),
    }
