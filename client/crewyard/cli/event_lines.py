"""A run's events as lines for people. Pure; called by `run` and `logs`."""

import json
from collections.abc import Mapping
from typing import Any

from crewyard.cli.output import duration, size
from crewyard.models import Event

_SHORT = 400
_LOUD = ("warning", "error", "critical")


def line(event: Event) -> str | None:
    """The line of an event; None for one that is not worth any."""
    kind, data = event["type"], event["data"]
    if kind == "log":
        return log(data)
    if kind == "run.started":
        return f"▶ started on {data.get('deployment_id')}"
    if kind in ("run.completed", "run.canceled"):
        return f"■ {kind.removeprefix('run.')} after {duration(data.get('duration_ms'))}"
    if kind == "run.failed":
        error = data.get("error") or {}
        why = f"{error.get('reason')}: {error.get('message')}"
        return f"■ failed after {duration(data.get('duration_ms'))}: {why}"
    if kind == "artifact":
        return f"+ {data.get('name')} ({size(data.get('size'))}{', partial' if data.get('partial') else ''})"
    if kind == "usage":
        return None
    return _other(kind, data)


def log(data: Mapping[str, Any]) -> str:
    """A printed or logged line."""
    level, message = str(data.get("level", "info")), str(data.get("message", ""))
    return f"{level}: {message}" if level in _LOUD and data.get("logger") else message


def _other(kind: str, data: Mapping[str, Any]) -> str:
    who, what = {
        "agent.started": ("agent", "task"),
        "agent.completed": ("agent", "output"),
        "agent.error": ("agent", "error"),
        "tool.called": ("tool", "input"),
        "tool.result": ("tool", "output"),
        "tool.error": ("tool", "error"),
    }.get(kind, ("", ""))
    if who:
        return f"· {kind} {short(data.get(who))}: {short(data.get(what))}"
    rest = {key: value for key, value in data.items() if key not in ("run_id", "timestamp")}
    return f"· {kind} {short(rest)}"


def short(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
