"""A build's log as lines that a reader can resume after. Pure. Called by `api.v1.deployments.build_logs`.

The log is stored in chunks, which end anywhere. A line's id is `<chunk>.<characters>`: so many characters of
the text from that chunk on have been given once the line is.
"""

import re
from dataclasses import dataclass
from typing import Any

LONGEST = 60_000
"""Characters of a message; a longer line goes on in the next one."""
_ID = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?", re.ASCII)


@dataclass(frozen=True)
class Place:
    """All before chunk `start`, and `given` characters from there on, have been given."""

    start: int
    given: int

    @property
    def id(self) -> str:
        """As a message's id."""
        return f"{self.start}.{self.given}"


BEGIN = Place(0, 0)


def place(identifier: str) -> Place:
    """What an id says; the beginning for one that is none of ours."""
    found = _ID.fullmatch(identifier)
    return Place(int(found[1]), int(found[2] or 0)) if found else BEGIN


@dataclass(frozen=True)
class Line:
    """A line, or a piece of a long one, and where a reader is that has it."""

    text: str
    place: Place
    continues: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """The message's data."""
        return {"message": self.text, **({"continues": True} if self.continues else {})}


class Lines:
    """Turns what is read, from `place` on, into lines. `start`: the chunk to read next."""

    def __init__(self, place: Place) -> None:
        self.start = place.start
        self._given = place.given
        self._rest = ""

    def feed(self, text: str, following: int) -> list[Line]:
        """The lines that end in the text of the chunks from `start` to `following`."""
        at = self._given - len(self._rest)
        *whole, self._rest = (self._rest + text[self._given :]).split("\n")
        found: list[Line] = []
        for part in whole:
            while len(part) > LONGEST:
                at += LONGEST
                found.append(Line(part[:LONGEST], Place(self.start, at), True))
                part = part[LONGEST:]
            at += len(part) + 1
            found.append(Line(part, Place(self.start, at)))
        while len(self._rest) > LONGEST:
            at += LONGEST
            found.append(Line(self._rest[:LONGEST], Place(self.start, at), True))
            self._rest = self._rest[LONGEST:]
        if following > self.start:
            self.start, self._given = following, 0
        return found

    def end(self) -> list[Line]:
        """The last line, where it has no end of its own."""
        rest, self._rest = self._rest, ""
        return [Line(rest, Place(self.start, 0))] if rest else []
