"""A run's events as lines for people. Pure. Called by the run program."""

import json
from collections.abc import Mapping
from typing import Any

LAST = ("run.completed", "run.failed", "run.canceled")
_SHORT = 500
_LEVELS = ("warning", "error", "critical")


def line(event: str, data: Mapping[str, Any]) -> str | None:
    """The line of an event; None for one that is not worth any."""
    kind, _, what = event.partition(".")
    if event == "log":
        level, message = str(data.get("level", "info")).lower(), str(data.get("message", ""))
        return f"[{level}] {message}" if level in _LEVELS and data.get("logger") else message
    if event == "run.started":
        return f"the run has started (deployment {data.get('deployment_id')})"
    if event in LAST:
        return f"the run is {what} after {duration(data.get('duration_ms'))}"
    if kind == "agent":
        more = {"started": data.get("task"), "completed": data.get("output")}.get(what, data.get("error"))
        return _joined("agent", data.get("agent"), what, more)
    if kind == "tool":
        more = {"called": data.get("input"), "result": data.get("output")}.get(what, data.get("error"))
        by = f" (for {short(data['agent'])})" if data.get("agent") else ""
        return _joined("tool", f"{short(data.get('tool'))}{by}", what, more)
    if event == "artifact":
        partial = ", partial" if data.get("partial") else ""
        return f"artifact {data.get('name')} ({data.get('size')} bytes{partial})"
    if event == "usage":
        return None  # Added up instead.
    rest = {key: value for key, value in data.items() if key not in ("run_id", "timestamp")}
    return f"{event} {short(rest)}"


def short(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def duration(milliseconds: Any) -> str:
    """A duration for people."""
    if not isinstance(milliseconds, int | float):
        return "an unknown time"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min {int(seconds % 60)} s".removeprefix(
        "0 h "
    )


class Tokens:
    """What the crew's models used, by model."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, data: Mapping[str, Any]) -> None:
        """Counts one `usage` event; what is no number counts as none."""
        counts = self._counts.setdefault(short(data.get("model") or "unknown"), [0, 0])
        for place, key in enumerate(("prompt_tokens", "completion_tokens")):
            value = data.get(key)
            counts[place] += value if isinstance(value, int) else 0

    def text(self) -> str:
        """All models on one line; empty without any."""
        parts = [f"{model}: {given} in, {made} out" for model, (given, made) in sorted(self._counts.items())]
        return "; ".join(parts)


def _joined(kind: str, name: Any, what: str, more: Any) -> str:
    head = f"{kind} {short(name if name is not None else '?')}: {what.replace('_', ' ')}"
    return head if more in (None, "", {}, []) else f"{head}: {short(more)}"
