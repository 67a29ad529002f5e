"""Converts Python values to JSON values, for events any value, for the output only what has a JSON form.

Used by `events` and `output`.
"""

from __future__ import annotations

import math
from itertools import islice

_UNLIMITED = 1 << 62
_MAX_DEPTH = 48
_MAX_TEXT_CHARS = 1000
_MAX_INT = 1 << 1024
_OPAQUE = object()  # says that a value has no JSON form


class NotJsonError(TypeError):
    """A value without a JSON form. `path` leads to it, as in `["rows", 3]`."""

    def __init__(self, value: object, problem: str = "") -> None:
        super().__init__(problem or f"{type(value).__name__} has no JSON form")
        self.value = value
        self.problem = problem
        self.path: list[object] = []


def json_safe(value: object, max_items: int = _UNLIMITED, in_use: bool = False) -> object:
    """Return a value of dict, list, str, int, float, bool and None that json.dumps and UTF-8 can encode.

    Dataclasses, named tuples and models (`model_dump`) become objects; sets and known iterables become lists;
    dates become ISO 8601; bytes become text or base64; circular references are cut; other values become their
    text. Takes at most `max_items` + 1 items of a collection; the extra item makes it exceed the caller's
    limit. `in_use`: the crew still uses the value, so do not consume iterators. Never raises.
    """
    try:
        return _Converter(max_items, in_use).convert(value, frozenset(), 0)
    except RecursionError:
        return _text(value)


def to_json(value: object) -> object:
    """Return the JSON form of a value as `json_safe` does. Raises NotJsonError where that is only a text that
    Python made up, such as `<Crew object at 0x7f…>`.
    """
    try:
        return _StrictConverter(_UNLIMITED, False).convert(value, frozenset(), 0)
    except RecursionError:
        raise NotJsonError(value, "it is nested too deeply") from None


class _Converter:
    """One conversion; a value without a JSON form becomes its text."""

    def __init__(self, max_items: int, in_use: bool) -> None:
        self._max_items = max_items
        self._in_use = in_use

    def convert(self, value: object, ancestors: frozenset[int], depth: int) -> object:
        """Return the JSON form of the value, which is inside the values `ancestors`."""
        if value is None or value is True or value is False:
            return value
        if isinstance(value, (str, int, float, bytes, bytearray, memoryview)):
            return _plain(value)
        if id(value) in ancestors:
            return self.circular(value)
        if depth >= _MAX_DEPTH:
            return self.too_deep(value)
        ancestors_and_self = ancestors | {id(value)}
        simpler = self._simpler(value)
        if isinstance(simpler, dict):
            items = list(islice(simpler.items(), self._max_items + 1))
            return {
                self.key(key): self.convert_part(key, item, ancestors_and_self, depth + 1)
                for key, item in items
            }
        if isinstance(simpler, list):
            return [
                self.convert_part(index, item, ancestors_and_self, depth + 1)
                for index, item in enumerate(simpler)
            ]
        return self.convert(simpler, ancestors_and_self, depth + 1)

    def _simpler(self, value: object) -> object:
        if self._in_use and hasattr(type(value), "gi_frame"):
            return _text(value)
        try:
            simpler = _simplify(value, self._max_items)
        except RecursionError:
            raise
        except Exception as error:  # code of the crew or a library runs here
            return self.unreadable(value, error)
        return self.opaque(value) if simpler is _OPAQUE else simpler

    def convert_part(self, part: object, value: object, ancestors: frozenset[int], depth: int) -> object:
        """Return the JSON form of an item of a list or dict."""
        return self.convert(value, ancestors, depth)

    def key(self, key: object) -> str:
        """Return the JSON form of the key of a dict."""
        if isinstance(key, str):
            return str(_plain(key))
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        return _text(key)

    def opaque(self, value: object) -> object:
        """Return what stands for a value without a JSON form."""
        return _text(value)

    def unreadable(self, value: object, error: Exception) -> object:
        """Return what stands for a value whose own conversion fails."""
        return _text(value)

    def circular(self, value: object) -> object:
        """Return what stands for a value inside itself."""
        return "<refers to itself>"

    def too_deep(self, value: object) -> object:
        """Return what stands for a value below the greatest depth."""
        return _text(value)


class _StrictConverter(_Converter):
    """One conversion; a value without a JSON form is an error."""

    def convert_part(self, part: object, value: object, ancestors: frozenset[int], depth: int) -> object:
        try:
            return self.convert(value, ancestors, depth)
        except NotJsonError as error:
            error.path.insert(0, part)
            raise

    def key(self, key: object) -> str:
        if key is not None and not isinstance(key, (str, bool, int, float)) and not _has_text_form(key):
            raise NotJsonError(key, f"a key of type {type(key).__name__}")
        return super().key(key)

    def opaque(self, value: object) -> object:
        if _has_text_form(value):
            return _text(value, _UNLIMITED)
        raise NotJsonError(value)

    def unreadable(self, value: object, error: Exception) -> object:
        raise NotJsonError(value, f"reading it failed with {type(error).__name__}: {error}"[:500]) from error

    def circular(self, value: object) -> object:
        raise NotJsonError(value, "it contains itself")

    def too_deep(self, value: object) -> object:
        raise NotJsonError(value, f"it is nested more than {_MAX_DEPTH} levels deep")


def _has_text_form(value: object) -> bool:
    """Return whether the type defines a text (paths, numbers, identifiers), other than one for debugging."""
    kind = type(value)
    return (
        kind.__str__ is not object.__str__
        and kind.__str__ is not kind.__repr__
        and not isinstance(value, type)
        and not hasattr(kind, "__await__")
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
    """Convert one level towards JSON: return a dict, a list, a plain value, or a value to convert again.

    Return _OPAQUE for a value without a JSON form.
    """
    kind = type(value)
    if isinstance(value, dict):
        return value if kind is dict else dict(value.items())  # which may be code of the crew
    if isinstance(value, tuple) and hasattr(kind, "_asdict"):
        return dict(value._asdict())  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple)):
        return list(islice(value, max_items + 1))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda item: (type(item).__name__, _text(item)))
    if isinstance(value, type):
        return _OPAQUE
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {value}"
    if callable(dump := getattr(kind, "model_dump", None)):
        return dump(value)
    if hasattr(kind, "__fields__") and callable(dump := getattr(kind, "dict", None)):  # pydantic 1
        return dict(dump(value))
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # already imported: the value is a dataclass

        return {field.name: getattr(value, field.name, None) for field in fields(value)}  # type: ignore[arg-type]
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name, None) for field in kind.__attrs_attrs__}
    if _derives(kind, "enum", "Enum"):
        return getattr(value, "value", None)
    if _derives(kind, "collections", "UserString"):
        return str(value)
    if callable(iso := getattr(kind, "isoformat", None)):
        return str(iso(value))
    if callable(seconds := getattr(kind, "total_seconds", None)):
        return float(seconds(value))
    if kind.__module__ == "numpy" and callable(plain := getattr(kind, "tolist", None)):
        return plain(value) if getattr(value, "size", 0) <= max_items else _OPAQUE
    if kind.__module__ == "collections" and hasattr(kind, "__iter__"):
        return dict(value) if hasattr(kind, "items") else list(islice(value, max_items + 1))  # type: ignore[call-overload]
    if kind.__name__ in ("dict_keys", "dict_values", "dict_items", "range", "mappingproxy", "generator"):
        return dict(value) if kind.__name__ == "mappingproxy" else list(islice(value, max_items + 1))  # type: ignore[call-overload]
    return _OPAQUE


def _derives(kind: type, module: str, name: str) -> bool:
    return any(base.__module__ == module and base.__name__ == name for base in kind.__mro__)


def _text(value: object, max_chars: int = _MAX_TEXT_CHARS) -> str:
    try:
        text = str(value)
    except Exception:  # a __str__ that fails
        text = object.__repr__(value)
    short = text if len(text) <= max_chars else text[:max_chars] + "…"
    return short.encode("utf-8", "replace").decode()
