"""What the crew's process says on descriptor 3, line by line. Pure; used by `intake`."""

from __future__ import annotations

from runner.pid1.api.fast_json import loads
from runner.pid1.output import encode
from runner.pid1.output.mask import Mask

LONGEST = 512 * 1024  # bytes of a line: an event of 64 KiB of text, escaped as badly as can be


class Said:
    """One line, understood: an event, the end, or trouble with the line itself."""

    __slots__ = ("data", "end", "kind", "level", "mark", "marked", "message", "trouble")

    def __init__(self) -> None:
        self.kind = ""
        self.data = ""
        self.level = "info"
        self.message = ""
        self.end: dict[str, object] | None = None
        self.trouble = ""
        self.mark = ""
        self.marked = ""  # "o", "e": the streams that hold the mark


def understand(line: bytes, limit: int, mask: Mask) -> Said:
    """Never raises: the crew can write anything here. `limit` is the largest event in bytes; `mask` changes
    what events and the failure tell, but not the result."""
    said = Said()
    try:
        value = loads(line, str)  # NaN is no JSON
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        said.trouble = "A line on the event channel was no JSON object and was dropped."
        return said
    mark, marked = value.get("mark"), value.get("in")
    if isinstance(mark, str) and marked in ("o", "e", "oe"):
        said.mark, said.marked = mark, str(marked)
    if isinstance(event := value.get("event"), dict):
        _event(event, limit, said, mask)
    elif isinstance(value.get("failure"), dict) or "result" in value:
        said.end = _masked(value, mask)
    else:
        said.trouble = "A line on the event channel was neither event nor result and was dropped."
    return said


def _masked(end: dict[str, object], mask: Mask) -> dict[str, object]:
    failure = end.get("failure")
    if not isinstance(failure, dict) or not isinstance(message := failure.get("message"), str):
        return end
    return {**end, "failure": {**failure, "message": mask.text(message)}}


def _event(event: dict[str, object], limit: int, said: Said, mask: Mask) -> None:
    kind, data = event.get("type"), event.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict) or not kind or len(kind) > 64:
        said.trouble = "An event without type or data was dropped."
    elif kind == "artifact" or kind.startswith("run."):
        said.trouble = f"An event of type {kind!r} was dropped: the service itself emits these."
    else:
        if kind == "log":
            said.level = level if (level := data.get("level")) in encode.LEVELS else "info"
            said.message = mask.text(str(data.get("message", "")))
            data = {**data, "message": said.message, "level": said.level}
        try:
            data = {name: mask.value(one) for name, one in data.items()}
            written = encode.data(data)
            size = len(written.encode())
        except (ValueError, RecursionError):
            said.trouble = f"An event of type {kind!r} was dropped: it is nested too deeply."
            return
        if size > limit:
            said.trouble = f"An event of type {kind!r} was dropped: {size} bytes, the limit is {limit}."
            return
        said.kind, said.data = kind, written
