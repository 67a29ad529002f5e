"""Files that the crew wrote below /app beside the artifacts: those to keep, the others. Used by `upload`."""

from __future__ import annotations

import os

from runner.pid1.api.fast_json import quoted
from runner.pid1.artifacts import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_SKIPPED = frozenset({"artifacts", ".git", ".venv", "node_modules"})
_MAX_NAMED_FILES = 10
_MAX_NAME_CHARS = 200
_ESCAPES = str.maketrans({sign: f"[{sign}]" for sign in "*?["} | {"!": "?"})


class WrittenFiles:
    """The files below `app` that are new or changed since `since` (epoch seconds), without the artifacts.

    `include` are the patterns of the configuration.
    """

    def __init__(self, app: str, since: float, include: Collection[str] = ()) -> None:
        self._app = app
        self._since_ns = int(since * 1e9)
        self._patterns = [IncludePattern(pattern) for pattern in include]

    def split(self, declared: Collection[str]) -> tuple[list[files.ArtifactFile], list[str]]:
        """Return the files to keep, and the names of the others; `declared` are paths that the crew named."""
        wanted = {path for text in declared if (path := _relative(self._app, text))}
        found, _ = files.scan(self._app, _SKIPPED)
        kept: list[files.ArtifactFile] = []
        others: list[str] = []
        for file in found:
            # The crew cannot set back ctime; files of the image are older.
            if file.signature[3] < self._since_ns:
                continue
            if file.name in wanted or any(pattern.matches(file.name) for pattern in self._patterns):
                kept.append(file)
            else:
                others.append(file.name)
        return kept, others


def warning(names: list[str]) -> str:
    """Return the message about files that are not stored, with the line that would keep them. Pure."""
    shown = [name.encode("utf-8", "backslashreplace").decode()[:_MAX_NAME_CHARS] for name in names]
    listed = ", ".join(shown[:_MAX_NAMED_FILES])
    if len(names) > _MAX_NAMED_FILES:
        listed += f" and {len(names) - _MAX_NAMED_FILES} more"
    patterns = list(dict.fromkeys(_pattern_for(name) for name in shown))[:_MAX_NAMED_FILES]
    line = ", ".join(quoted(pattern) for pattern in patterns)
    return (
        f"The crew wrote files that are not stored: {listed}. To keep them, write them into artifacts/, or "
        f"add to crew.toml: [artifacts] include = [{line}]"
    )


def _pattern_for(name: str) -> str:
    """Return the pattern that a person would write for this file: its first directory, or itself."""
    directory, slash, _ = name.translate(_ESCAPES).partition("/")
    return f"{directory}/**" if slash else f"/{directory}"


def _relative(app: str, text: str) -> str:
    """Return a path that the crew named relative to `app`; an empty string if it is outside."""
    path = os.path.normpath(os.path.join(app, text))
    return path[len(app) + 1 :] if path.startswith(app + "/") else ""


class IncludePattern:
    """A pattern of the configuration, by the rules of `[build] exclude`."""

    def __init__(self, text: str) -> None:
        body = text.strip()
        parts = [part for part in body.removeprefix("./").split("/") if part] or [""]
        self._parts = parts if "/" in body.rstrip("/") else ["**", *parts]

    def matches(self, name: str) -> bool:
        """Return whether the pattern names the file or a directory above it."""
        from fnmatch import fnmatchcase

        positions = {0}
        for segment in name.split("/"):
            after: set[int] = set()
            for at in self._expand(positions):
                if self._parts[at] == "**":
                    after.add(at if at < len(self._parts) - 1 else at + 1)
                elif fnmatchcase(segment, self._parts[at]):
                    after.add(at + 1)
            if len(self._parts) in after:
                return True
            positions = after
        return False

    def _expand(self, positions: set[int]) -> set[int]:
        """Return `positions` and those after each `**`, which also matches no directory."""
        expanded = set(positions)
        for at, part in enumerate(self._parts[:-1]):
            if at in expanded and part == "**":
                expanded.add(at + 1)
        return expanded
