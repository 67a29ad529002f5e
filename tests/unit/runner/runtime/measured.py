"""Durations that the runner measured, in events. Called by the tests of adapters."""

from __future__ import annotations

from typing import Any

MEASURED = "measured"


def with_measured(events: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the events with MEASURED in place of each valid duration."""
    return [
        (kind, {**data, "duration_ms": MEASURED} if _is_duration(data.get("duration_ms")) else data)
        for kind, data in events
    ]


def _is_duration(value: object) -> bool:
    return type(value) is int and value >= 0
