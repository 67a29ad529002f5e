"""JSON encoding of responses. Pure. Called by `api.http.responses` and `api.streaming.sse`."""

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Encode as UTF-8 JSON; a lone surrogate, which UTF-8 cannot represent, stays an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
