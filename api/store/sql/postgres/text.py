"""Texts and JSON as PostgreSQL can keep them: it has neither the character NUL nor half a surrogate pair.

Both can stand in what crews, clients and objects say. They are kept as a mark and
four hexadecimal digits; the mark itself, a character of private use, likewise, so
that every text comes back as it was. Pure. Called by `api.store.sql.columns` and the engine.
"""

import json
import re
from math import isfinite
from typing import Any

_MARK = "\ue000"
_TOLD = re.compile("[\0\ue000\ud800-\udfff]")
_MARKED = re.compile(f"{_MARK}([0-9a-f]{{4}})")
_JSON_TOLD = re.compile(r"(\\\\)|\\u(0000|e000|d[89a-f][0-9a-f]{2})")
_JSON_MARKED = re.compile(r"(\\\\)|\\ue000([0-9a-f]{4})")


def keep(text: str) -> str:
    """The text as it is stored."""
    return _TOLD.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def give(text: str) -> str:
    """The text that was stored."""
    return _MARKED.sub(lambda found: chr(int(found[1], 16)), text) if _MARK in text else text


def dump(value: Any) -> str:
    """JSON as it is stored; a number that JSON does not have is null."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"))
    return _JSON_TOLD.sub(lambda found: found[1] or f"\\ue000{found[2]}", text)


def load(text: str) -> Any:
    """The value that was stored."""
    if "\\ue000" in text:
        text = _JSON_MARKED.sub(lambda found: found[1] or f"\\u{found[2]}", text)
    return json.loads(text)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
