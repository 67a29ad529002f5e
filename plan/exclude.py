"""Which files `[build] exclude` leaves out of the source. Called by plan.make.

A subset of what .gitignore knows: `*`, `?`, `[…]` within a name, `**` for any
number of directories, `/` at the end for directories only, `!` to take back in.
A pattern with a `/` before its end is anchored at the root, any other one holds
at every depth. The last pattern that matches a file or one of the directories
above it decides, so that `data` and `!data/keep.csv` keep the one file.
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import CONFIG_INVALID, PlanError
from .source import Files

_PATTERNS = 100
_LETTERS = 256
_KEPT = -1
_ORIGIN = "build.exclude"


@dataclass(frozen=True)
class _Pattern:
    """`names` are matched one by one; None stands for `**`."""

    text: str
    names: tuple[re.Pattern[str] | None, ...]
    only_directories: bool
    negated: bool

    def matches(self, parts: list[str]) -> bool:
        reached = {0}
        for part in parts:
            reached = {after for at in self._open(reached) for after in self._step(at, part)}
            if not reached:
                return False
        return len(self.names) in self._open(reached)

    def _open(self, reached: set[int]) -> set[int]:
        """`reached`, and what follows each `**`, which also stands for no directory at all."""
        found = set(reached)
        for at in range(len(self.names)):
            if at in found and self.names[at] is None:
                found.add(at + 1)
        return found

    def _step(self, at: int, part: str) -> Iterable[int]:
        if at < len(self.names):
            name = self.names[at]
            if name is None:
                yield at
            elif name.match(part):
                yield at + 1


def left_out(files: Files, patterns: Sequence[str]) -> dict[str, str]:
    """The paths of `files` that go, each with its pattern.

    Raises PlanError(ConfigInvalid) for a pattern that could never mean anything, or too many of them.
    """
    if not patterns:
        return {}
    if len(patterns) > _PATTERNS:
        raise PlanError(
            CONFIG_INVALID,
            f"{_ORIGIN} has {len(patterns)} patterns",
            f"Write at most {_PATTERNS}; name directories rather than files.",
        )
    excludes = _Excludes([_parsed(text) for text in patterns])
    return {path: pattern for path in files if (pattern := excludes.pattern_for(path)) is not None}


class _Excludes:
    """The patterns of one configuration, with what is known of the directories met so far."""

    def __init__(self, patterns: list[_Pattern]) -> None:
        self._patterns = patterns
        self._directories: dict[str, int] = {"": _KEPT}

    def pattern_for(self, path: str) -> str | None:
        """The pattern that leaves the file `path` out, None where it stays."""
        last = max(self._above(posixpath.dirname(path)), self._last(path, directory=False))
        if last == _KEPT or self._patterns[last].negated:
            return None
        return self._patterns[last].text

    def _above(self, directory: str) -> int:
        """The number of the last pattern for `directory` or one above it; each directory is judged once."""
        waiting = []
        while directory not in self._directories:
            waiting.append(directory)
            directory = posixpath.dirname(directory)
        last = self._directories[directory]
        for below in reversed(waiting):
            last = max(last, self._last(below, directory=True))
            self._directories[below] = last
        return last

    def _last(self, path: str, directory: bool) -> int:
        parts = path.split("/")
        for number in range(len(self._patterns) - 1, -1, -1):
            pattern = self._patterns[number]
            if (directory or not pattern.only_directories) and pattern.matches(parts):
                return number
        return _KEPT


def _parsed(text: str) -> _Pattern:
    if len(text) > _LETTERS:
        raise PlanError(
            CONFIG_INVALID, f"{_ORIGIN} has a pattern of {len(text)} letters", f"At most {_LETTERS}."
        )
    body = text.strip().removeprefix("!")
    only_directories, anchored = body.endswith("/"), "/" in body.rstrip("/")
    names = [name for name in body.removeprefix("./").split("/") if name]
    if not names or "\\" in body or ".." in names or "." in names:
        raise PlanError(
            CONFIG_INVALID,
            f"{_ORIGIN}: {text!r} is no pattern for paths of the source",
            'For example: "tests", "data/*.csv", "**/notes.md", "!data/small.csv".',
        )
    if names[-1] == "**":
        names.append("*")  # all that is inside, not the directory's own name
    if not anchored:
        names.insert(0, "**")
    compiled = tuple(None if name == "**" else re.compile(fnmatch.translate(name)) for name in names)
    return _Pattern(text, compiled, only_directories, text.strip().startswith("!"))
