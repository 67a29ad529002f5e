"""Files that `[build] exclude` removes from the source. Called by plan.make.

A subset of .gitignore: `*`, `?`, `[…]` within a name, `**` for any number of directories, a trailing `/` for
directories only, `!` to include again. A pattern with a `/` before its end is anchored at the root, others
match at every depth. The last pattern that matches a file or a directory above it decides; therefore `data`
and `!data/keep.csv` keep that file.
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import CONFIG_INVALID, PlanError
from .source import Files

_MAX_PATTERNS = 100
_MAX_PATTERN_LENGTH = 256
_NO_MATCH = -1
_ORIGIN = "build.exclude"


@dataclass(frozen=True)
class _Pattern:
    """`names` match path segments in order; None stands for `**`."""

    text: str
    names: tuple[re.Pattern[str] | None, ...]
    directories_only: bool
    negated: bool

    def matches(self, parts: list[str]) -> bool:
        positions = {0}
        for part in parts:
            positions = {
                next_position for at in self._expand(positions) for next_position in self._step(at, part)
            }
            if not positions:
                return False
        return len(self.names) in self._expand(positions)

    def _expand(self, positions: set[int]) -> set[int]:
        """Return `positions` and those after each `**`, which also matches no directory."""
        expanded = set(positions)
        for at in range(len(self.names)):
            if at in expanded and self.names[at] is None:
                expanded.add(at + 1)
        return expanded

    def _step(self, at: int, part: str) -> Iterable[int]:
        if at < len(self.names):
            name = self.names[at]
            if name is None:
                yield at
            elif name.match(part):
                yield at + 1


def excluded_paths(files: Files, patterns: Sequence[str]) -> dict[str, str]:
    """Return the excluded paths of `files`, each with its pattern.

    Raises PlanError(ConfigInvalid) for an invalid pattern or too many of them.
    """
    if not patterns:
        return {}
    if len(patterns) > _MAX_PATTERNS:
        raise PlanError(
            CONFIG_INVALID,
            f"{_ORIGIN} has {len(patterns)} patterns",
            f"Use at most {_MAX_PATTERNS}; exclude directories instead of files.",
        )
    excludes = _PatternList([_parse_pattern(text) for text in patterns])
    return {path: pattern for path in files if (pattern := excludes.pattern_for(path)) is not None}


class _PatternList:
    """The patterns of one configuration, with cached matches of directories."""

    def __init__(self, patterns: list[_Pattern]) -> None:
        self._patterns = patterns
        self._matches_by_directory: dict[str, int] = {"": _NO_MATCH}

    def pattern_for(self, path: str) -> str | None:
        """Return the pattern that excludes the file `path`, or None."""
        last_match = max(
            self._last_match_above(posixpath.dirname(path)), self._last_match(path, directory=False)
        )
        if last_match == _NO_MATCH or self._patterns[last_match].negated:
            return None
        return self._patterns[last_match].text

    def _last_match_above(self, directory: str) -> int:
        """Return the index of the last pattern that matches `directory` or one above it (cached)."""
        pending = []
        while directory not in self._matches_by_directory:
            pending.append(directory)
            directory = posixpath.dirname(directory)
        last_match = self._matches_by_directory[directory]
        for below in reversed(pending):
            last_match = max(last_match, self._last_match(below, directory=True))
            self._matches_by_directory[below] = last_match
        return last_match

    def _last_match(self, path: str, directory: bool) -> int:
        parts = path.split("/")
        for number, pattern in reversed([*enumerate(self._patterns)]):
            if (directory or not pattern.directories_only) and pattern.matches(parts):
                return number
        return _NO_MATCH


def _parse_pattern(text: str) -> _Pattern:
    if len(text) > _MAX_PATTERN_LENGTH:
        raise PlanError(
            CONFIG_INVALID,
            f"{_ORIGIN} has a pattern of {len(text)} characters",
            f"Use at most {_MAX_PATTERN_LENGTH}.",
        )
    body = text.strip().removeprefix("!")
    directories_only, anchored = body.endswith("/"), "/" in body.rstrip("/")
    names = [name for name in body.removeprefix("./").split("/") if name]
    if not names or "\\" in body or ".." in names or "." in names:
        raise PlanError(
            CONFIG_INVALID,
            f"{_ORIGIN}: {text!r} is not a valid pattern for paths of the source",
            'For example: "tests", "data/*.csv", "**/notes.md", "!data/small.csv".',
        )
    if names[-1] == "**":
        names.append("*")  # the content, not the directory itself
    if not anchored:
        names.insert(0, "**")
    compiled = tuple(None if name == "**" else re.compile(fnmatch.translate(name)) for name in names)
    return _Pattern(text, compiled, directories_only, text.strip().startswith("!"))
