"""JSON before the grant, where every import delays the crew. Used by `facade` and `launch`.

The standard library's own C parts without the modules around them: `json` loads `re` and `enum`, which takes
longer than the claim. Where an interpreter has other parts, `json` it is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Rules:
    """What `json.JSONDecoder` is to the scanner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(data: bytes) -> Any:
    """The value. Raises ValueError where it is no JSON, or not UTF-8."""
    text = data.decode().strip(" \t\r\n")
    try:
        from _json import make_scanner

        scan: Any = make_scanner(_Rules())  # type: ignore[arg-type]
    except (ImportError, TypeError, AttributeError):
        import json

        return json.loads(text)
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def dumps(value: object) -> str:
    """The text, of ASCII characters only. Raises TypeError or ValueError for what is no JSON value."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode: Any = make_encoder(
            {}, _no_value, encode_basestring_ascii, None, ": ", ", ", False, False, True
        )
    except (ImportError, TypeError):
        import json

        return json.dumps(value)
    return "".join(encode(value, 0))


def _no_value(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON value")
