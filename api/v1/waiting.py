"""Why an object waits, as JSON. Pure. Called by the views of runs and deployments."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.v1.timestamps import timestamp

_UNWRITTEN_YEAR = "1970"
"""Year of the schema's default conditions, of an object whose status nothing has written yet."""


def waiting(cause: Mapping[str, Any], created_at: datetime, position: int | None = None) -> dict[str, Any]:
    """Return `{reason, message, since}` of a stored cause; causes of older versions have no `since`.

    An object without a written status waits since its creation.

    The message ends with the `position` in a queue, which no status contains.
    """
    message, since = str(cause.get("message") or ""), cause.get("since")
    return {
        "reason": str(cause.get("reason") or ""),
        "message": message if position is None else f"{message} Position {position}.".lstrip(),
        "since": timestamp(created_at) if str(since).startswith(_UNWRITTEN_YEAR) else since,
    }
