"""Inputs by reference: what does not go into an object is kept in the run's row alone. Pure.

Called by `api.v1.runs.create`, which makes the objects, and by `api.store.index.runs.run_writer`, which reads them.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from crds.json_depth import too_deep

_INTEGERS = range(-(2**63), 2**63)


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def reference(value: Mapping[str, Any], most: int) -> dict[str, Any] | None:
    """The `spec.inputRef` of an input that is kept by the facade; None where the object holds it whole.

    `most` are the bytes, as canonical JSON, that the facade writes into an object.
    Kubernetes rounds integers beyond 64 bits: an input with one is kept here too, and nobody sees another.
    """
    text = canonical(value)
    return None if len(text) <= most and not _rounded(text) else _named(text)


def names(reference: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether an object's `spec.inputRef` is that of this input, whatever was written into objects then."""
    return reference == _named(canonical(value))


def _named(text: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}


def held(spec: Mapping[str, Any], most: int) -> Mapping[str, Any] | None:
    """The input of an object that the facade did not make; None where the object does not give it.

    It does not with an `inputRef`, whose bytes nobody else can bring, with more than the `most` bytes that
    such an object may hold, and with what is nested too deeply to be kept.
    """
    found: Mapping[str, Any] = spec.get("input") or {}
    if "inputRef" in spec or too_deep(found):
        return None
    return None if len(canonical(found)) > most else found


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two values are equal as Kubernetes keeps them: it writes 1.0 as 1, and 1e20 in full."""
    return bool(_plain(one) == _plain(other))


def _plain(value: Any) -> Any:
    return json.loads(canonical(value), parse_float=_number)


def _number(text: str) -> float | int:
    found = float(text)
    return int(found) if found.is_integer() else found


def _rounded(text: bytes) -> bool:
    found: list[int] = []

    def note(digits: str) -> int:
        found.append(int(digits))
        return 0

    json.loads(text, parse_int=note)
    return any(number not in _INTEGERS for number in found)
