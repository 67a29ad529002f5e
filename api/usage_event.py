"""What a `usage` event says about a call of a model. Pure. Called by `api.internal` and `api.telemetry`."""

from collections.abc import Mapping
from typing import Any

TYPE = "usage"
DURATION = "duration_ms"
MAX_CALL_MS = 7 * 24 * 3_600_000
"""The longest that an installation lets a run take."""


def duration_ms(data: Mapping[str, Any]) -> int | None:
    """Return how long the call took; None if that is not said, or is not such a number."""
    value = data.get(DURATION)
    return value if type(value) is int and 0 <= value <= MAX_CALL_MS else None
