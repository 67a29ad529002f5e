"""Server-Sent Events as text, and what a reader says of where it was. Pure.

Called by `api.translate.events` and by the routes that follow something.
"""

import re
from collections.abc import Mapping
from typing import Any

from api.encoding import encode

_LAST_ID = re.compile(r"[0-9]{1,15}", re.ASCII)


def frame(event: str, data: Mapping[str, Any], identifier: int | str | None = None) -> bytes:
    """One message: `id` (where there is one), `event`, and `data` as one line of JSON.

    JSON escapes control characters, so the data cannot break out of its line.
    """
    head = f"event: {event}\n" if identifier is None else f"id: {identifier}\nevent: {event}\n"
    return head.encode() + b"data: " + encode(data) + b"\n\n"


def last_event_id(header: str | None) -> int:
    """The id to resume after: 0, the beginning, without a header or where it is none of ours.

    An id we never gave (another server's, a made-up one) must not hide events, so it counts as none.
    """
    return int(header) if header is not None and _LAST_ID.fullmatch(header.strip()) else 0
