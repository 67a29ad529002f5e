"""Masks the values of the project's variables in the crew's output. Pure; used by `capture` and `channel`.

Only values of at least 8 bytes: shorter ones (a port, `true`) occur in many lines. The crew's result and its
artifacts stay unmasked.
"""

from __future__ import annotations

import os
from itertools import count

from runner.pid1.api.fast_json import quoted, quoted_ascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIN_SECRET_BYTES = 8  # bytes
REPLACEMENT = "***"
_KEPT_KEYS = frozenset({
    "prompt_tokens", "completion_tokens", "duration_ms", "$comment", "additionalProperties", "contains",
    "definitions", "dependentRequired", "dependentSchemas", "deprecated", "description", "examples",
    "exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties",
    "minContains", "minItems", "minLength", "minProperties", "multipleOf", "prefixItems", "properties",
    "propertyNames", "readOnly", "required", "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
    "writeOnly",
})  # fmt: skip
"""Keys with a meaning, of an event `usage` and of JSON Schema; shorter ones contain no value."""


class SecretMask:
    """Masks values of variables: whole, line by line, and as JSON and Python literals."""

    __slots__ = ("_bytes", "_texts")

    def __init__(self, names: Iterable[str] = (), variables: Mapping[str, str] | None = None) -> None:
        """Mask the values of the variables in `names` that are set."""
        forms: set[str] = set()
        for value in filter(None, map((variables or {}).get, names)):
            for part in (value, *value.splitlines()):
                written = quoted(part), quoted_ascii(part), repr(part)
                forms |= {part, *(text[1:-1] for text in written)}
        secrets = {
            form for form in (form.strip() for form in forms) if len(os.fsencode(form)) >= MIN_SECRET_BYTES
        }
        # Longest first, so masking one value leaves no part of another.
        self._texts = sorted(secrets, key=lambda form: (-len(form), form))
        self._bytes = [os.fsencode(form) for form in self._texts]

    def line(self, line: bytes) -> bytes:
        """Return a line of output with secrets masked."""
        for form in self._bytes:
            if form in line:
                line = line.replace(form, REPLACEMENT.encode())
        return line

    def cut_at(self, line: bytes, start: int, end: int) -> int:
        """Return where a piece from `start` to `end` of a line should end: before a secret at its end.

        What follows the line is unknown yet. A secret longer than half of the piece is cut.
        """
        cut = end
        for form in self._bytes:
            first = max((start + end) // 2, end - len(form) + 1)
            positions = [*range(max(first, len(line) - MIN_SECRET_BYTES + 1), cut)]
            while (first := line.find(form[:MIN_SECRET_BYTES], first, cut + MIN_SECRET_BYTES - 1)) >= 0:
                positions.append(first)
                first += 1
            cut = min((p for p in positions if form.startswith(line[p : p + len(form)])), default=cut)
        return cut

    def text(self, text: str) -> str:
        """Return text with secrets masked."""
        for form in self._texts:
            if form in text:
                text = text.replace(form, REPLACEMENT)
        return text

    def value(self, value: object) -> object:
        """Return a JSON value with its strings and keys masked, not its numbers. Raises RecursionError."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self.mapping(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def mapping(self, value: dict[str, object]) -> dict[str, object]:
        """Return a JSON object masked as `value` does; keys that become equal are numbered."""
        masked: dict[str, object] = {}
        numbers = count(2)
        for name, item in value.items():
            text = key = name if name in _KEPT_KEYS else self.text(name)
            while key in masked:
                key = f"{text} {next(numbers)}"
            masked[key] = self.value(item)
        return masked
