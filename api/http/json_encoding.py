"""JSON as it leaves us. Pure. Called by `api.http.responses` and `api.streaming.sse`."""

import json
from typing import Any


def encode(value: Any) -> bytes:
    """JSON as UTF-8; a lone surrogate, which UTF-8 cannot carry, stays the escape it came as."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
