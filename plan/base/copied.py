"""Files of the source that a Dockerfile can copy: its whole build context. Called by plan.base.read.

Too many are harmless, because each is part of the key; a missing one would not be found by the builder.
"""

import fnmatch
from collections.abc import Iterable, Iterator

from ..errors import CONFIG_INVALID, PlanError
from ..source import Files
from .instruction import Instruction

IGNORE_FILE = ".dockerignore"
# Patterns whose meaning differs between Go and Python; such a name matches every name.
_DIFFERENT = "[\\"
# A source with one of these may match nothing, as in COPY pyproject.toml uv.lock* ./
_WILDCARDS = frozenset("*?[")


def copied_paths(files: Files, path: str, executed: Iterable[Instruction]) -> tuple[str, ...]:
    """Return the paths of `files` that COPY and ADD name. Raises PlanError for one that does not exist."""
    patterns: list[list[str]] = []
    for each in executed:
        for source in _sources(each):
            pattern = _pattern(path, each, source)
            if _WILDCARDS.isdisjoint(source) and not any(_matches(pattern, name) for name in files):
                raise PlanError(
                    CONFIG_INVALID,
                    f"{path} line {each.line}: the source has no file {source[:200]!r}",
                    "Correct the path from the root of the source; [build] exclude may exclude it.",
                )
            patterns.append(pattern)
    if not patterns:
        return ()
    # The builder reads it in the context.
    patterns.append([IGNORE_FILE])
    return tuple(sorted(name for name in files if any(_matches(pattern, name) for pattern in patterns)))


def _sources(each: Instruction) -> Iterator[str]:
    if each.word not in ("COPY", "ADD") or each.image or any(name == "from" for name, _ in each.flags):
        return
    for source in each.values()[:-1]:
        if not (each.word == "ADD" and source.startswith(("http://", "https://"))):
            yield source


def _pattern(path: str, each: Instruction, source: str) -> list[str]:
    """Return the names of a source from the root; names after a variable are left out."""
    parts: list[str] = []
    for part in source.split("/"):
        if part == "..":
            raise PlanError(
                CONFIG_INVALID,
                f"{path} line {each.line}: {source[:200]!r} leaves the source",
                "Copy files of the source only.",
            )
        if "$" in part or part == "**":
            break
        if part not in ("", "."):
            parts.append("*" if any(letter in part for letter in _DIFFERENT) else part)
    return parts


def _matches(pattern: list[str], name: str) -> bool:
    """Return whether a file is the one named by the pattern, or below it."""
    parts = name.split("/")
    return len(parts) >= len(pattern) and all(map(fnmatch.fnmatchcase, parts, pattern))
