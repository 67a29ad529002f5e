"""Inputs by reference: large inputs are stored only in the run's row, not in its object. Pure.

Called by `api.v1.runs.create`, which makes the objects, and `api.store.index.runs.run_writer`, which reads
them.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from crds.json_depth import too_deep

_INTEGERS = range(-(2**63), 2**63)


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def reference(value: Mapping[str, Any], max_bytes: int) -> dict[str, Any] | None:
    """Return the `spec.inputRef` of an input that only the API stores; None if it goes into the object.

    The API writes at most `max_bytes`, as canonical JSON, into an object. Kubernetes rounds integers beyond
    64 bits: an input with one is also stored by reference, to keep it exact.
    """
    text = canonical(value)
    return None if len(text) <= max_bytes and not _has_rounded_integer(text) else _reference(text)


def refers_to(reference: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Return whether an object's `spec.inputRef` is that of this input."""
    return reference == _reference(canonical(value))


def _reference(text: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}


def inline_input(spec: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any] | None:
    """Return the input of an object that another client created; None if the object does not give it.

    It does not with an `inputRef`, whose bytes only the API could have stored, with more than `max_bytes`,
    or with a value nested too deeply to be stored.
    """
    value: Mapping[str, Any] = spec.get("input") or {}
    if "inputRef" in spec or too_deep(value):
        return None
    return None if len(canonical(value)) > max_bytes else value


def above_limit(value: Mapping[str, Any], max_bytes: int) -> bool:
    """Return whether a value has more than `max_bytes` or is nested too deeply to be stored."""
    return too_deep(value) or len(canonical(value)) > max_bytes


def is_equal(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two values are equal as Kubernetes stores them."""
    return as_stored(first) == as_stored(second)


def as_stored(value: Any) -> bytes:
    """Return the canonical JSON of a value as Kubernetes stores it: it writes 1.0 as 1, and 1e20 in full."""
    return canonical(json.loads(canonical(value), parse_float=_number))


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number


def _has_rounded_integer(text: bytes) -> bool:
    integers: list[int] = []

    def note(digits: str) -> int:
        integers.append(int(digits))
        return 0

    json.loads(text, parse_int=note)
    return any(number not in _INTEGERS for number in integers)
