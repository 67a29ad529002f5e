"""JSON without the module `json`. Used by all of process 1.

Uses the C functions of the standard library directly: `json` imports `re` and `enum`, which takes longer than
the claim and competes with the start of the crew for the CPU. Falls back to `json` on other interpreters.
"""

from __future__ import annotations

try:
    from _json import encode_basestring as quoted
    from _json import encode_basestring_ascii as quoted_ascii
    from _json import make_encoder, make_scanner
except ImportError:
    from json.encoder import encode_basestring as quoted
    from json.encoder import encode_basestring_ascii as quoted_ascii

    make_encoder = make_scanner = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["dumps", "loads", "quoted", "quoted_ascii"]


class _ScannerContext:
    """The attributes of `json.JSONDecoder` that the scanner reads."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    def __init__(self, constant: Callable[[str], object]) -> None:
        self.parse_constant = constant


def loads(data: bytes, constant: Callable[[str], object] = float) -> Any:
    """Return the value. Raises ValueError if it is not JSON or not UTF-8, RecursionError if it is too deep.

    `constant` converts NaN, Infinity and -Infinity, which are not JSON.
    """
    text = data.decode("utf-8", "surrogatepass").strip(" \t\r\n")
    try:
        scan: Any = make_scanner(_ScannerContext(constant))  # type: ignore[arg-type]
    except (TypeError, AttributeError):
        import json

        return json.loads(text, parse_constant=constant)
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def dumps(value: object, ascii_only: bool = True) -> str:
    """Return the text. Raises TypeError or ValueError for non-JSON values, RecursionError if too deep."""
    quote = quoted_ascii if ascii_only else quoted
    try:
        encode: Any = make_encoder({}, _reject, quote, None, ": ", ", ", False, False, True)
    except TypeError:
        import json

        return json.dumps(value, ensure_ascii=ascii_only)
    return "".join(encode(value, 0))


def _reject(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not a JSON value")
