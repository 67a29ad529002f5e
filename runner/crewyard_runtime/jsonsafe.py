"""Any Python value → a JSON value. Never raises. Used by `events` and `output`."""

from __future__ import annotations

import math
from itertools import islice

_ALL = 1 << 62
_DEEPEST = 48
_REPR = 1000
_LARGEST_INT = 1 << 1024


def safe(value: object, most: int = _ALL, look: bool = False) -> object:
    """A value of dict, list, str, int, float, bool and None only, which json.dumps takes and UTF-8 can hold.

    Dataclasses, named tuples and models (`model_dump`) become objects, sets and iterables of known kinds
    become
    lists, dates ISO 8601, bytes text or base64; what refers to itself is cut; the rest is its text.
    Of a collection at most `most` items are taken and one more, which makes it too large for whoever asked
    for so few. `look`: the value is still in use, and what can be read only once is not read here.
    """
    try:
        return _safe(value, frozenset(), 0, most, look)
    except RecursionError:
        return _words(value)


def _safe(value: object, above: frozenset[int], depth: int, most: int, look: bool) -> object:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, (str, int, float, bytes, bytearray, memoryview)):
        return _plain(value)
    if id(value) in above:
        return "<refers to itself>"
    if depth >= _DEEPEST:
        return _words(value)
    inside = above | {id(value)}
    try:
        simpler = _words(value) if look and hasattr(type(value), "gi_frame") else _simpler(value, most)
    except RecursionError:
        raise
    except Exception:  # code of the crew's or of a library runs here
        return _words(value)
    if isinstance(simpler, dict):
        items = list(islice(simpler.items(), most + 1))
        return {_key(key): _safe(item, inside, depth + 1, most, look) for key, item in items}
    if isinstance(simpler, list):
        return [_safe(item, inside, depth + 1, most, look) for item in simpler]
    return (
        simpler
        if simpler is None or isinstance(simpler, (str, int, float))
        else _safe(simpler, inside, depth + 1, most, look)
    )


def _plain(value: str | int | float | bytes | bytearray | memoryview) -> object:
    if isinstance(value, str):
        text = str.__str__(value)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        number = int(value)
        return number if -_LARGEST_INT < number < _LARGEST_INT else hex(number)
    if isinstance(value, float):
        number_ = float(value)
        return number_ if math.isfinite(number_) else repr(number_)
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        import base64

        return base64.b64encode(raw).decode()


def _simpler(value: object, most: int) -> object:
    """One step towards JSON: a dict, a list, a plain value, or something for another step."""
    kind = type(value)
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple) and hasattr(kind, "_asdict"):
        return dict(value._asdict())  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple)):
        return list(islice(value, most + 1))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda item: (type(item).__name__, _words(item)))
    if isinstance(value, type):
        return _words(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {value}"
    if callable(dump := getattr(kind, "model_dump", None)):
        return dict(dump(value))
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # imported already: the value's class is one

        return {field.name: getattr(value, field.name, None) for field in fields(value)}  # type: ignore[arg-type]
    if hasattr(kind, "__attrs_attrs__"):
        return {one.name: getattr(value, one.name, None) for one in kind.__attrs_attrs__}
    if any(base.__module__ == "enum" and base.__name__ == "Enum" for base in kind.__mro__):
        return getattr(value, "value", None)
    if callable(iso := getattr(kind, "isoformat", None)):
        return str(iso(value))
    if callable(seconds := getattr(kind, "total_seconds", None)):
        return float(seconds(value))
    if kind.__module__ == "numpy" and callable(plain := getattr(kind, "tolist", None)):
        return plain(value) if getattr(value, "size", 0) <= most else _words(value)
    if kind.__module__ == "collections" and hasattr(kind, "__iter__"):
        return dict(value) if hasattr(kind, "items") else list(islice(value, most + 1))  # type: ignore[call-overload]
    if kind.__name__ in ("dict_keys", "dict_values", "dict_items", "range", "mappingproxy", "generator"):
        return dict(value) if kind.__name__ == "mappingproxy" else list(islice(value, most + 1))  # type: ignore[call-overload]
    return _words(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return str(_plain(key))
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return _words(key)


def _words(value: object) -> str:
    try:
        text = str(value)
    except Exception:  # a __str__ that fails
        text = object.__repr__(value)
    short = text if len(text) <= _REPR else text[:_REPR] + "…"
    return short.encode("utf-8", "replace").decode()
