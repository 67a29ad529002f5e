"""Server-Sent Events as text, and what a reader says of where it was. Pure.

Called by `api.v1.runs.events_view`, `api.streaming.connection` and by the routes that follow something.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api.http.json_encoding import encode

PIECE_BYTES = 32 * 1024
"""What is written at once; a single larger message is a piece of its own."""
_LAST_ID = re.compile(r"[0-9]{1,15}", re.ASCII)


def frame(event: str, data: Mapping[str, Any], identifier: int | str | None = None) -> bytes:
    """One message: `id` (where there is one), `event`, and `data` as one line of JSON.

    JSON escapes control characters, so the data cannot break out of its line.
    """
    head = f"event: {event}\n" if identifier is None else f"id: {identifier}\nevent: {event}\n"
    return head.encode() + b"data: " + encode(data) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole messages in the form in which they go out (a chunk of HTTP/1.1), made once for all readers.

    `last` is the id of its last message, `before` that which precedes its first.
    """

    chunk: bytes
    before: int = 0
    last: int = 0

    @classmethod
    def of(cls, plain: bytes, before: int = 0, last: int = 0) -> "Piece":
        """The piece of these messages."""
        return cls(b"%x\r\n%b\r\n" % (len(plain), plain), before, last)

    @property
    def plain(self) -> bytes:
        """The messages without the chunk around them, for readers of HTTP/1.0."""
        return self.chunk[self.chunk.index(b"\n") + 1 : -2]


def pieces(frames: Iterable[bytes], before: int = 0) -> Iterator[Piece]:
    """Messages, whose ids follow `before` one by one, put together to pieces as they are needed."""
    batch, last = bytearray(), before
    for one in frames:
        if batch and len(batch) + len(one) > PIECE_BYTES:
            yield Piece.of(bytes(batch), before, last)
            batch.clear()
            before = last
        batch += one
        last += 1
    if batch:
        yield Piece.of(bytes(batch), before, last)


def last_event_id(header: str | None) -> int:
    """The id to resume after: 0, the beginning, without a header or where it is none of ours.

    An id we never gave (another server's, a made-up one) must not hide events, so it counts as none.
    """
    given = (header or "").strip()
    return int(given) if _LAST_ID.fullmatch(given) else 0
