"""What a runner sends as events, checked and completed. Pure.

A runner that breaks the protocol loses nothing but form: an event that may not
be is stored as a log line that says so, since refusing it would stop the numbering.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.internal.context import Refusal, number
from api.store.logs.event_log import Said
from crds import names
from crds.json_depth import DEEPEST, too_deep
from crds.times import format_time, parse_time

MOST = 500
FRAME = 1024
"""Bytes of an event besides what its runner counts."""
_TYPE = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what a crew may emit, no less
_OURS = frozenset({"run_id", "timestamp"})


def events(run: str, sent: Mapping[str, Any], now: datetime, most: int) -> list[Said]:
    """The events of a call, with `run_id` and `timestamp` in their data. Raises Refusal 400.

    What has more than `most` bytes is dropped.
    """
    found = sent.get("events")
    if not isinstance(found, list) or len(found) > MOST:
        raise Refusal(400, f"events must be a list of at most {MOST}")
    return [_event(run, item, now, most) for item in found]


def _event(run: str, item: Any, now: datetime, most: int) -> Said:
    if not isinstance(item, dict):
        raise Refusal(400, "events must be a list of objects with seq, type, time, data")
    seq = number(item, "seq")
    type_ = item.get("type")
    data = item.get("data") if isinstance(item.get("data"), dict) else {}
    head = {"run_id": names.id_of(run), "timestamp": _moment(item.get("time"), now)}
    problem = _problem(type_, data, most)
    if problem:
        return Said(seq, "log", {**head, "level": "warning", "message": problem})
    kept = {key: value for key, value in data.items() if key not in _OURS} if data else {}
    return Said(seq, str(type_), {**head, **kept})


def _problem(type_: Any, data: Any, most: int) -> str | None:
    if not isinstance(type_, str) or not _TYPE.fullmatch(type_):
        return "an event was dropped: its type must be up to 64 letters, digits and . _ -"
    if type_.startswith("run.") or type_ == "artifact":
        return f"an event was dropped: the type {type_} is given by the service"
    if too_deep(data):
        return f"an event of type {type_} was dropped: it is nested in more than {DEEPEST} levels"
    size = len(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
    if size > most + FRAME:
        return f"an event of type {type_} was dropped: {size} bytes are more than {most}"
    return None


def _moment(text: Any, now: datetime) -> str:
    try:
        return format_time(parse_time(text))
    except (TypeError, ValueError):
        return format_time(now)
