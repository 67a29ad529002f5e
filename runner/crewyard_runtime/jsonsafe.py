"""Converts any Python value to a JSON value; never raises. Used by `events` and `output`."""

from __future__ import annotations

import math
from itertools import islice

_UNLIMITED = 1 << 62
_MAX_DEPTH = 48
_MAX_TEXT_CHARS = 1000
_MAX_INT = 1 << 1024


def json_safe(value: object, max_items: int = _UNLIMITED, in_use: bool = False) -> object:
    """Return a value of dict, list, str, int, float, bool and None that json.dumps and UTF-8 can encode.

    Dataclasses, named tuples and models (`model_dump`) become objects; sets and known iterables become lists;
    dates become ISO 8601; bytes become text or base64; circular references are cut; other values become their
    text. Takes at most `max_items` + 1 items of a collection; the extra item makes it exceed the caller's
    limit. `in_use`: the crew still uses the value, so do not consume iterators.
    """
    try:
        return _convert(value, frozenset(), 0, max_items, in_use)
    except RecursionError:
        return _text(value)


def _convert(value: object, ancestors: frozenset[int], depth: int, max_items: int, in_use: bool) -> object:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, (str, int, float, bytes, bytearray, memoryview)):
        return _plain(value)
    if id(value) in ancestors:
        return "<refers to itself>"
    if depth >= _MAX_DEPTH:
        return _text(value)
    ancestors_and_self = ancestors | {id(value)}
    try:
        simpler = _text(value) if in_use and hasattr(type(value), "gi_frame") else _simplify(value, max_items)
    except RecursionError:
        raise
    except Exception:  # code of the crew or a library runs here
        return _text(value)
    if isinstance(simpler, dict):
        items = list(islice(simpler.items(), max_items + 1))
        return {
            _key(key): _convert(item, ancestors_and_self, depth + 1, max_items, in_use) for key, item in items
        }
    if isinstance(simpler, list):
        return [_convert(item, ancestors_and_self, depth + 1, max_items, in_use) for item in simpler]
    return (
        simpler
        if simpler is None or isinstance(simpler, (str, int, float))
        else _convert(simpler, ancestors_and_self, depth + 1, max_items, in_use)
    )


def _plain(value: str | int | float | bytes | bytearray | memoryview) -> object:
    if isinstance(value, str):
        text = str.__str__(value)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        number = int(value)
        return number if -_MAX_INT < number < _MAX_INT else hex(number)
    if isinstance(value, float):
        number_ = float(value)
        return number_ if math.isfinite(number_) else repr(number_)
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        import base64

        return base64.b64encode(raw).decode()


def _simplify(value: object, max_items: int) -> object:
    """Convert one level towards JSON: return a dict, a list, a plain value, or a value to convert again."""
    kind = type(value)
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple) and hasattr(kind, "_asdict"):
        return dict(value._asdict())  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple)):
        return list(islice(value, max_items + 1))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda item: (type(item).__name__, _text(item)))
    if isinstance(value, type):
        return _text(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {value}"
    if callable(dump := getattr(kind, "model_dump", None)):
        return dict(dump(value))
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # already imported: the value is a dataclass

        return {field.name: getattr(value, field.name, None) for field in fields(value)}  # type: ignore[arg-type]
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name, None) for field in kind.__attrs_attrs__}
    if any(base.__module__ == "enum" and base.__name__ == "Enum" for base in kind.__mro__):
        return getattr(value, "value", None)
    if callable(iso := getattr(kind, "isoformat", None)):
        return str(iso(value))
    if callable(seconds := getattr(kind, "total_seconds", None)):
        return float(seconds(value))
    if kind.__module__ == "numpy" and callable(plain := getattr(kind, "tolist", None)):
        return plain(value) if getattr(value, "size", 0) <= max_items else _text(value)
    if kind.__module__ == "collections" and hasattr(kind, "__iter__"):
        return dict(value) if hasattr(kind, "items") else list(islice(value, max_items + 1))  # type: ignore[call-overload]
    if kind.__name__ in ("dict_keys", "dict_values", "dict_items", "range", "mappingproxy", "generator"):
        return dict(value) if kind.__name__ == "mappingproxy" else list(islice(value, max_items + 1))  # type: ignore[call-overload]
    return _text(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return str(_plain(key))
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return _text(key)


def _text(value: object) -> str:
    try:
        text = str(value)
    except Exception:  # a __str__ that fails
        text = object.__repr__(value)
    short = text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + "…"
    return short.encode("utf-8", "replace").decode()
