"""Build log lines with resumable ids. Pure. Called by `api.v1.deployments.build_logs`.

The log is stored in chunks that may end within a line. The id of a line is `<chunk>.<characters>`: the number
of characters, counted from the start of that chunk, that a client has after receiving the line.
"""

import re
from dataclasses import dataclass
from typing import Any

MAX_LINE_CHARACTERS = 60_000
"""Characters of a message; a longer line continues in the next message."""
_ID = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?", re.ASCII)


@dataclass(frozen=True)
class BuildLogPosition:
    """Position of a client: it has all chunks before `start` and `consumed` characters from there."""

    start: int
    consumed: int

    @property
    def id(self) -> str:
        """The position as an SSE id."""
        return f"{self.start}.{self.consumed}"


START = BuildLogPosition(0, 0)


def parse_position(identifier: str) -> BuildLogPosition:
    """Return the position of an SSE id; the start of the log for an id in another format."""
    match = _ID.fullmatch(identifier)
    return BuildLogPosition(int(match[1]), int(match[2] or 0)) if match else START


@dataclass(frozen=True)
class BuildLogLine:
    """A line, or a part of a long line, and the position after it."""

    text: str
    position: BuildLogPosition
    continues: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """The data of the SSE message."""
        return {"message": self.text, **({"continues": True} if self.continues else {})}


class BuildLogSplitter:
    """Splits log text after `position` into lines. `start`: the chunk to read next."""

    def __init__(self, position: BuildLogPosition) -> None:
        self.start = position.start
        self._consumed = position.consumed
        self._remainder = ""

    def feed(self, text: str, next_chunk: int) -> list[BuildLogLine]:
        """Return the lines that end in the text of the chunks from `start` to before `next_chunk`."""
        offset = self._consumed - len(self._remainder)
        *complete, self._remainder = (self._remainder + text[self._consumed :]).split("\n")
        lines: list[BuildLogLine] = []
        for part in complete:
            while len(part) > MAX_LINE_CHARACTERS:
                offset += MAX_LINE_CHARACTERS
                lines.append(
                    BuildLogLine(part[:MAX_LINE_CHARACTERS], BuildLogPosition(self.start, offset), True)
                )
                part = part[MAX_LINE_CHARACTERS:]
            offset += len(part) + 1
            lines.append(BuildLogLine(part, BuildLogPosition(self.start, offset)))
        while len(self._remainder) > MAX_LINE_CHARACTERS:
            offset += MAX_LINE_CHARACTERS
            lines.append(
                BuildLogLine(
                    self._remainder[:MAX_LINE_CHARACTERS], BuildLogPosition(self.start, offset), True
                )
            )
            self._remainder = self._remainder[MAX_LINE_CHARACTERS:]
        if next_chunk > self.start:
            self.start, self._consumed = next_chunk, 0
        return lines

    def flush(self) -> list[BuildLogLine]:
        """Return the last line if it has no newline."""
        remainder, self._remainder = self._remainder, ""
        return [BuildLogLine(remainder, BuildLogPosition(self.start, 0))] if remainder else []
