"""Parser of the event channel, the lines on descriptor 3 of the crew's process. Pure; used by `capture`."""

from __future__ import annotations

from runner.pid1.api.fast_json import loads
from runner.pid1.budget import usage_of
from runner.pid1.output import encode
from runner.pid1.output.mask import SecretMask

MAX_CHANNEL_LINE_BYTES = 512 * 1024  # an event of 64 KiB of text in the worst case of JSON escapes
RESERVED_TYPES = ("artifact", "budget.warning", "input.requested", "input.received")


class ChannelMessage:
    """A parsed line: an event, a question, the final report, or an error of the line itself."""

    __slots__ = (
        "ask",
        "data",
        "error",
        "final_report",
        "kind",
        "level",
        "marked_streams",
        "marker",
        "message",
        "usage",
    )

    def __init__(self) -> None:
        self.kind = ""
        self.data = ""
        self.level = "info"
        self.message = ""
        self.final_report: dict[str, object] | None = None
        self.ask: dict[str, object] | None = None
        self.error = ""
        self.marker = ""
        self.usage: tuple[str, int, int] | None = None  # model and tokens of an event `usage`
        self.marked_streams = ""  # "o", "e": the streams that contain the marker


def parse_line(line: bytes, limit: int, mask: SecretMask) -> ChannelMessage:
    """Parse a line. Never raises, since the crew can write anything.

    `limit` is the size limit of an event in bytes; `mask` applies to events and the failure, not the result.
    """
    message = ChannelMessage()
    try:
        value = loads(line, str)  # NaN is not JSON
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        message.error = "A line on the event channel was dropped: it is not a JSON object."
        return message
    marker, marked_streams = value.get("mark"), value.get("in")
    if isinstance(marker, str) and marked_streams in ("o", "e", "oe"):
        message.marker, message.marked_streams = marker, str(marked_streams)
    if isinstance(event := value.get("event"), dict):
        _parse_event(event, limit, message, mask)
    elif isinstance(ask := value.get("ask"), dict):
        message.ask = ask
    elif isinstance(value.get("failure"), dict) or "result" in value:
        message.final_report = _mask_failure(value, mask)
    else:
        message.error = "A line on the event channel was dropped: it is neither an event nor a result."
    return message


def _mask_failure(end: dict[str, object], mask: SecretMask) -> dict[str, object]:
    failure = end.get("failure")
    if not isinstance(failure, dict) or not isinstance(message := failure.get("message"), str):
        return end
    return {**end, "failure": {**failure, "message": mask.text(message)}}


def _parse_event(event: dict[str, object], limit: int, message: ChannelMessage, mask: SecretMask) -> None:
    kind, data = event.get("type"), event.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict) or not kind or len(kind) > 64:
        message.error = "An event was dropped: it has no type or no data."
    elif kind in RESERVED_TYPES or kind.startswith("run."):
        message.error = f"An event of type {kind!r} was dropped: only the service emits these."
    else:
        if kind == "log":
            message.level = level if (level := data.get("level")) in encode.LEVELS else "info"
            message.message = mask.text(str(data.get("message", "")))
            data = {**data, "message": message.message, "level": message.level}
        try:
            data = mask.mapping(data)
            written = encode.data(data)
            size = len(written.encode())
        except (ValueError, RecursionError):
            message.error = f"An event of type {kind!r} was dropped: it is nested too deeply."
            return
        if size > limit:
            message.error = f"An event of type {kind!r} was dropped: {size} bytes, the limit is {limit}."
            return
        message.kind, message.data = kind, written
        if kind == "usage":
            message.usage = usage_of(data)
