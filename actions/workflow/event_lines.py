"""Text lines for the events of a run. Pure. Called by the action `run`."""

import json
from collections.abc import Mapping
from typing import Any

FINAL_EVENTS = ("run.completed", "run.failed", "run.canceled")
_MAX_VALUE_CHARS = 500
_SHOWN_LEVELS = ("warning", "error", "critical")


def line(event: str, data: Mapping[str, Any]) -> str | None:
    """Return the line of an event; None if the event has none."""
    kind, _, action = event.partition(".")
    if event == "log":
        level, message = str(data.get("level", "info")).lower(), str(data.get("message", ""))
        return f"[{level}] {message}" if level in _SHOWN_LEVELS and data.get("logger") else message
    if event == "run.started":
        return f"the run has started (deployment {data.get('deployment_id')})"
    if event in FINAL_EVENTS:
        return f"the run is {action} after {duration(data.get('duration_ms'))}"
    if kind == "agent":
        detail = {"started": data.get("task"), "completed": data.get("output")}.get(action, data.get("error"))
        return _joined("agent", data.get("agent"), action, detail)
    if kind == "tool":
        detail = {"called": data.get("input"), "result": data.get("output")}.get(action, data.get("error"))
        by = f" (for {short(data['agent'])})" if data.get("agent") else ""
        return _joined("tool", f"{short(data.get('tool'))}{by}", action, detail)
    if event == "artifact":
        partial = ", partial" if data.get("partial") else ""
        return f"artifact {data.get('name')} ({data.get('size')} bytes{partial})"
    if event == "usage":
        return None  # TokenUsage sums these up
    fields = {key: value for key, value in data.items() if key not in ("run_id", "timestamp")}
    return f"{event} {short(fields)}"


def short(value: Any) -> str:
    """Return a value on one line, truncated."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_VALUE_CHARS else text[: _MAX_VALUE_CHARS - 1] + "…"


def duration(milliseconds: Any) -> str:
    """Return a duration in milliseconds as text."""
    if not isinstance(milliseconds, int | float):
        return "an unknown time"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min {int(seconds % 60)} s".removeprefix(
        "0 h "
    )


class TokenUsage:
    """Token counts of the crew's models, by model."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, data: Mapping[str, Any]) -> None:
        """Add one `usage` event; values that are not integers count as 0."""
        counts = self._counts.setdefault(short(data.get("model") or "unknown"), [0, 0])
        for index, key in enumerate(("prompt_tokens", "completion_tokens")):
            value = data.get(key)
            counts[index] += value if isinstance(value, int) else 0

    def text(self) -> str:
        """Return the counts of all models on one line; "" if there are none."""
        parts = [
            f"{model}: {prompt} in, {completion} out"
            for model, (prompt, completion) in sorted(self._counts.items())
        ]
        return "; ".join(parts)


def _joined(kind: str, name: Any, action: str, detail: Any) -> str:
    head = f"{kind} {short(name if name is not None else '?')}: {action.replace('_', ' ')}"
    return head if detail in (None, "", {}, []) else f"{head}: {short(detail)}"
