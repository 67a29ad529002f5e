"""Encoding of text and JSON for PostgreSQL, which stores neither NUL nor lone surrogates.

Crews, clients and objects can send both. They are stored as a mark and four hexadecimal digits; the mark
itself, a private-use character, is encoded likewise, so every text round-trips. Pure. Called by
`api.store.sql.columns` and the engine.
"""

import json
import re
from math import isfinite
from typing import Any

_MARK = "\ue000"
_UNSTORABLE = re.compile("[\0\ue000\ud800-\udfff]")
_ENCODED = re.compile(f"{_MARK}([0-9a-f]{{4}})")
_JSON_UNSTORABLE = re.compile(r"(\\\\)|\\u(0000|e000|d[89a-f][0-9a-f]{2})")
_JSON_ENCODED = re.compile(r"(\\\\)|\\ue000([0-9a-f]{4})")


def encode(text: str) -> str:
    """Return the text as it is stored."""
    return _UNSTORABLE.sub(lambda match: f"{_MARK}{ord(match[0]):04x}", text)


def decode(text: str) -> str:
    """Return the original of a stored text."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), text) if _MARK in text else text


def dump(value: Any) -> str:
    """Return JSON as it is stored; NaN and infinities become null."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"))
    return _JSON_UNSTORABLE.sub(lambda match: match[1] or f"\\ue000{match[2]}", text)


def load(text: str) -> Any:
    """Return the value of stored JSON."""
    if "\\ue000" in text:
        text = _JSON_ENCODED.sub(lambda match: match[1] or f"\\u{match[2]}", text)
    return json.loads(text)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
