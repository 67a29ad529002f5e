"""Validation of the events a runner sends. Pure. Called by `api.internal.events`.

An invalid event is stored as a `log` event with a warning: rejecting it would stop the numbering.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api import usage_event
from api.internal.context import PodApiError, int_field
from api.store.logs.event_log import NewEvent
from crds import names
from crds.json_depth import MAX_STORED_DEPTH, too_deep
from crds.times import format_time, parse_time

MAX_EVENTS_PER_CALL = 500
ENVELOPE_BYTES = 1024
"""Bytes of an event that its runner does not count."""
_TYPE = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # equals the types that crewyard_runtime accepts
_RESERVED_FIELDS = frozenset({"run_id", "timestamp"})


def items_of(body: Mapping[str, Any]) -> list[Any]:
    """Return the events of a call as they were sent. Raises PodApiError 400."""
    items = body.get("events")
    if not isinstance(items, list) or len(items) > MAX_EVENTS_PER_CALL:
        raise PodApiError(400, f"events must be a list of at most {MAX_EVENTS_PER_CALL} objects")
    return items


def parse_event(run: str, item: Any, now: datetime, max_bytes: int) -> NewEvent:
    """Return one event of a call with `run_id` and `timestamp` in its data. Raises PodApiError 400.

    An event with more than `max_bytes` bytes is replaced by a warning. What is no duration of a model call is
    left out of its event.
    """
    if not isinstance(item, dict):
        raise PodApiError(400, "events must be a list of objects with seq, type, time, data")
    seq = int_field(item, "seq")
    type_ = item.get("type")
    sent = item.get("data")
    data: dict[str, Any] = sent if isinstance(sent, dict) else {}
    head = {"run_id": names.id_of(run), "timestamp": _timestamp(item.get("time"), now)}
    problem = _problem(type_, data)
    if problem is None:
        fields = {key: value for key, value in data.items() if key not in _RESERVED_FIELDS}
        if type_ == usage_event.TYPE and usage_event.duration_ms(fields) is None:
            fields.pop(usage_event.DURATION, None)
        event = NewEvent(seq, str(type_), {**head, **fields})
        limit = max_bytes + ENVELOPE_BYTES
        # Counted exactly only near the limit: spaces after separators at most double the line.
        if len(fields) == len(data) and 2 * len(event.line) <= limit:
            return event
        size = len(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
        if size <= limit:
            return event
        problem = f"an event of type {type_} was dropped: it has {size} bytes, more than {max_bytes}"
    return NewEvent(seq, "log", {**head, "level": "warning", "message": problem})


def _problem(type_: Any, data: Any) -> str | None:
    if not isinstance(type_, str) or not _TYPE.fullmatch(type_):
        return "an event was dropped: its type must be up to 64 letters, digits and . _ -"
    if type_.startswith("run.") or type_ == "artifact":
        return f"an event was dropped: the type {type_} is reserved for the service"
    if too_deep(data):
        return f"an event of type {type_} was dropped: it is nested more than {MAX_STORED_DEPTH} levels deep"
    return None


def _timestamp(text: Any, now: datetime) -> str:
    try:
        return format_time(parse_time(text))
    except (TypeError, ValueError):
        return format_time(now)
