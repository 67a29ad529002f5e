"""JSON of responses, and text that UTF-8 can represent. Pure.

Called by `api.http.responses`, `api.streaming.sse` and what stores or sends the text of crews.
"""

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Encode as UTF-8 JSON; a lone surrogate, which UTF-8 cannot represent, stays an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def without_surrogates(text: str) -> str:
    """Return the text with `?` for lone surrogates, which JSON allows and UTF-8, so SQLite, does not."""
    return text.encode(errors="replace").decode()
