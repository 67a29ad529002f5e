"""Hides the values of the project's variables in what the crew says. Pure; used by `intake` and `channel`.

A value counts from 8 bytes on: shorter ones (a port, `true`) stand in half of all lines. What the crew
returns and the files that it leaves are its product, and stay as they are.
"""

from __future__ import annotations

import os

from runner.pid1.api.fast_json import quoted, quoted_ascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEAST = 8  # bytes
HIDDEN = "***"


class Mask:
    """Knows the values of some variables: whole, line by line, as JSON and Python write them."""

    __slots__ = ("_bytes", "_texts")

    def __init__(self, names: Iterable[str] = (), variables: Mapping[str, str] | None = None) -> None:
        """`names`: the variables whose values are hidden, as far as they are set."""
        forms: set[str] = set()
        for value in filter(None, map((variables or {}).get, names)):
            for part in (value, *value.splitlines()):
                written = quoted(part), quoted_ascii(part), repr(part)
                forms |= {part, *(text[1:-1] for text in written)}
        known = {form for form in (form.strip() for form in forms) if len(os.fsencode(form)) >= LEAST}
        # The longest first, so that no part of one is left by another.
        self._texts = sorted(known, key=lambda form: (-len(form), form))
        self._bytes = [os.fsencode(form) for form in self._texts]

    def line(self, line: bytes) -> bytes:
        """One line of output."""
        for form in self._bytes:
            if form in line:
                line = line.replace(form, HIDDEN.encode())
        return line

    def text(self, text: str) -> str:
        """The same for text."""
        for form in self._texts:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text

    def value(self, value: object) -> object:
        """JSON with all its texts so changed; numbers and names stay. Raises RecursionError if too deep."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value
