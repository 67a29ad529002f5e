"""Text lines for the events of a run. Pure; called by `run` and `logs`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crewyard.cli.output import duration, size
from crewyard.models import Event

_MAX_VALUE_CHARS = 400
_MAX_TOKENS = 10**9
"""Of one call: the service counts no more either."""
_SHOWN_LEVELS = ("warning", "error", "critical")


def line(event: Event) -> str | None:
    """Return the line of an event; None if the event has none."""
    kind, data = event["type"], event["data"]
    if kind == "log":
        return log(data)
    if kind == "run.started":
        return f"▶ started on {data.get('deployment_id')}"
    if kind in ("run.completed", "run.canceled"):
        return f"■ {kind.removeprefix('run.')} after {duration(data.get('duration_ms'))}"
    if kind == "run.failed":
        error = data.get("error") or {}
        reason = f"{error.get('reason')}: {error.get('message')}"
        return f"■ failed after {duration(data.get('duration_ms'))}: {reason}"
    if kind == "artifact":
        return f"+ {data.get('name')} ({size(data.get('size'))}{', partial' if data.get('partial') else ''})"
    if kind == "input.received":
        return f"answered {data.get('request_id')} by {data.get('by')}"
    if kind == "budget.warning":
        return f"warning: {data.get('message')}"
    if kind in ("usage", "input.requested"):
        return None
    return _other(kind, data)


def tokens(calls: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the line of a run's tokens by model, from the data of its `usage` events; None without any."""
    sums: dict[str, list[int]] = {}
    for data in calls:
        counts = sums.setdefault(short(data.get("model") or "unknown model"), [0, 0])
        for index, name in enumerate(("prompt_tokens", "completion_tokens")):
            counts[index] += (
                data[name] if type(data.get(name)) is int and 0 <= data[name] <= _MAX_TOKENS else 0
            )
    texts = [f"{model} {prompt:,} in, {completion:,} out" for model, (prompt, completion) in sums.items()]
    return f"tokens: {'; '.join(texts)}" if texts else None


def log(data: Mapping[str, Any]) -> str:
    """Return the line of a log event; a level prefix only for warnings and errors of a logger."""
    level, message = str(data.get("level", "info")), str(data.get("message", ""))
    return f"{level}: {message}" if level in _SHOWN_LEVELS and data.get("logger") else message


def _other(kind: str, data: Mapping[str, Any]) -> str:
    name_field, value_field = {
        "agent.started": ("agent", "task"),
        "agent.completed": ("agent", "output"),
        "agent.error": ("agent", "error"),
        "tool.called": ("tool", "input"),
        "tool.result": ("tool", "output"),
        "tool.error": ("tool", "error"),
    }.get(kind, ("", ""))
    if name_field:
        return f"· {kind} {short(data.get(name_field))}: {short(data.get(value_field))}"
    fields = {key: value for key, value in data.items() if key not in ("run_id", "timestamp")}
    return f"· {kind} {short(fields)}"


def short(value: Any) -> str:
    """Return a value on one line, truncated."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 1]}…"
