"""requirements.txt read as pip reads it, into lines that need no other file. Called by plan.packages.dependencies.

Comments and blank lines go, so that editing them rebuilds nothing. Nested files
(`-r`, `-c`) are taken in, since only the declaration itself reaches the build.
"""

import posixpath
import re
from dataclasses import dataclass, field

from ..errors import CONFIG_INVALID, PlanError
from ..source import Files, text_of

_COMMENT = re.compile(r"(^|\s+)#.*$")
_NESTED = re.compile(r"(-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?=[^-\s]))(?P<path>\S+)$")
_LOCAL = re.compile(r"(-e|--editable)?\s*(?P<path>\.{1,2}(/\S*)?|/\S*|file:\S*)(\[[^\]]*\])?$")
_FILES = 32


@dataclass
class Requirements:
    """`lines`, `constraints` for pip; `own_project` where the file names the tree itself (`-e .`)."""

    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    own_project: bool = False


def read_requirements(files: Files, path: str) -> Requirements:
    """All that `pip install -r path` would read. Raises PlanError(ConfigInvalid) naming file and line."""
    found = Requirements()
    seen: set[tuple[str, bool]] = set()
    waiting = [(path, False)]
    while waiting:
        current, constraint = waiting.pop(0)
        if (current, constraint) in seen:
            continue
        seen.add((current, constraint))
        if len(seen) > _FILES:
            raise PlanError(CONFIG_INVALID, f"{path} takes in more than {_FILES} files", "Merge some.")
        for number, line in logical_lines(text_of(files, current)):
            nested = _NESTED.match(line)
            if nested:
                target = _nested(files, current, number, nested["path"])
                waiting.append((target, constraint or nested[1] in ("-c", "--constraint")))
                continue
            local = _LOCAL.match(line)
            if local:
                _check_local(current, number, local["path"], line)
                found.own_project = True
                continue
            (found.constraints if constraint else found.lines).append(line)
    return found


def logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines that mean something, each with its number: continuations joined, comments gone."""
    lines: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start if pending else number
        comment = raw.lstrip().startswith("#")
        if raw.endswith("\\") and not comment:
            pending += raw[:-1]
            continue
        whole = f"{pending} {raw}" if comment else pending + raw
        if line := _clean(whole):
            lines.append((start, line))
        pending = ""
    if line := _clean(pending):
        lines.append((start, line))
    return lines


def _clean(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())


def package_name(line: str) -> str | None:
    """The package a requirement names, in its normal form, or None (an option, an address)."""
    match = re.match(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[<>=!~;@,(\s])", line)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else None


def _nested(files: Files, current: str, number: int, target: str) -> str:
    place = posixpath.normpath(posixpath.join(posixpath.dirname(current), target))
    if "://" in target or place not in files:
        raise PlanError(
            CONFIG_INVALID,
            f"{current} line {number}: {target} is not a file of the source",
            "Add the file, or remove the line.",
        )
    return place


def _check_local(current: str, number: int, target: str, line: str) -> None:
    if line.endswith("]"):
        raise PlanError(
            CONFIG_INVALID,
            f"{current} line {number}: {line}: optional dependencies of the project itself are not installed",
            "Write those packages as lines of their own.",
        )
    if target in (".", "./") and posixpath.dirname(current) == "":
        return
    raise PlanError(
        CONFIG_INVALID,
        f"{current} line {number}: {target} is a local path; only the project itself (-e .) can be named",
        "Name a package by its name, or put its code into the source: /app and /app/src are on the path.",
    )
