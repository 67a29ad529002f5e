"""Encoding of Server-Sent Events and parsing of Last-Event-ID. Pure.

Called by `api.streaming.run_events`, `api.streaming.connection` and the streaming routes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api.http.json_encoding import encode

BATCH_BYTES = 32 * 1024
"""Maximum size of a batch; a larger message is a batch of its own."""
_LAST_ID = re.compile(r"[0-9]{1,15}", re.ASCII)


def frame(event: str, data: Mapping[str, Any], identifier: int | str | None = None) -> bytes:
    """Encode a message: optional `id`, `event`, and `data` as one line of JSON.

    JSON escapes control characters, so data cannot contain a line break.
    """
    return encoded_frame(event, encode(data), identifier)


def encoded_frame(event: str, line: bytes, identifier: int | str | None = None) -> bytes:
    """Return the message whose data is a line of JSON."""
    prefix = f"event: {event}\n" if identifier is None else f"id: {identifier}\nevent: {event}\n"
    return prefix.encode() + b"data: " + line + b"\n\n"


@dataclass(frozen=True, slots=True)
class SseBatch:
    """Complete messages as one HTTP/1.1 chunk, encoded once for all readers.

    `last_id` is the id of its last message, `previous_id` the id before its first.
    """

    chunk: bytes
    previous_id: int = 0
    last_id: int = 0

    @classmethod
    def of(cls, plain: bytes, previous_id: int = 0, last_id: int = 0) -> "SseBatch":
        """Encode a batch of messages."""
        return cls(b"%x\r\n%b\r\n" % (len(plain), plain), previous_id, last_id)

    @property
    def text(self) -> bytes:
        """The messages without chunk framing, for HTTP/1.0 clients."""
        return self.chunk[self.chunk.index(b"\n") + 1 : -2]


def batches(frames: Iterable[bytes], previous_id: int = 0) -> Iterator[SseBatch]:
    """Yield batches of messages lazily; the ids of the messages count up from `previous_id`."""
    batch, last_id = bytearray(), previous_id
    for frame in frames:
        if batch and len(batch) + len(frame) > BATCH_BYTES:
            yield SseBatch.of(bytes(batch), previous_id, last_id)
            batch.clear()
            previous_id = last_id
        batch += frame
        last_id += 1
    if batch:
        yield SseBatch.of(bytes(batch), previous_id, last_id)


def last_event_id(header: str | None) -> int:
    """Return the id to resume after; 0 (the start) without a header or with a foreign id.

    An id that this server never sent must not hide events, so it counts as absent.
    """
    text = (header or "").strip()
    return int(text) if _LAST_ID.fullmatch(text) else 0
