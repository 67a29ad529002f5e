"""The trace of a run: W3C trace contexts, and ids that follow from the object's uid. Pure.

Called by the API server, which starts runs and exports their spans, and by the controller's metrics.
"""

import hashlib
import re
from dataclasses import dataclass

HEADER = "traceparent"
_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII,
)
_SAMPLED, _RANDOM = 0x01, 0x02
RUN_PART, CREW_PART = "run", "crew"
"""The span of a run from creation to end, and that of its crew, the parent of the crew's own spans."""


@dataclass(frozen=True)
class TraceContext:
    """A span of a trace, by its ids in hexadecimal; `flags` are those of W3C Trace Context that are known."""

    trace_id: str
    span_id: str
    flags: int = _SAMPLED

    @property
    def sampled(self) -> bool:
        """Whether the trace is recorded."""
        return bool(self.flags & _SAMPLED)

    @property
    def text(self) -> str:
        """The value of a header `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def parse(text: str | None) -> TraceContext | None:
    """Return the context of a header `traceparent`; None if there is none, or it is not valid.

    A newer version may append fields. The run of a client that sends an invalid one begins a new trace.
    """
    match = _TRACEPARENT.fullmatch(text or "")
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    if set(match["trace"]) == {"0"} or set(match["span"]) == {"0"}:
        return None
    return TraceContext(match["trace"], match["span"], int(match["flags"], 16) & (_SAMPLED | _RANDOM))


def trace_id(parent: str | None, uid: str) -> str:
    """Return the trace of the object with this uid: that of its parent, else its own."""
    given = parse(parent)
    return given.trace_id if given else _digest(uid, "trace", 16)


def span_id(uid: str, part: str) -> str:
    """Return the id of a span of the object with this uid: always the same for the same part."""
    return _digest(uid, f"span {part}", 8)


def crew_context(parent: str | None, uid: str, exported: bool) -> str | None:
    """Return what the crew gets as TRACEPARENT: its span; without export its parent as it is, or None."""
    given = parse(parent)
    if not exported or (given and not given.sampled):
        return given.text if given else None
    flags = given.flags if given else _SAMPLED
    return TraceContext(trace_id(parent, uid), span_id(uid, CREW_PART), flags).text


def _digest(uid: str, text: str, size: int) -> str:
    return hashlib.sha256(f"crewyard {uid} {text}".encode()).digest()[:size].hex()
