"""Parser of requirements.txt into self-contained lines, like pip. Called by plan.packages.dependencies.

Drops comments and blank lines, which must not trigger a rebuild. Inlines nested files (`-r`, `-c`), because
only the declaration itself reaches the build.
"""

import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import CONFIG_INVALID, PlanError
from ..source import Files, text_of

_COMMENT = re.compile(r"(^|\s+)#.*$")
_NESTED = re.compile(r"(-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?=[^-\s]))(?P<path>\S+)$")
_LOCAL = re.compile(
    r"(?P<editable>-e|--editable)?(?:\s|=)*(?:[A-Za-z0-9._-]+(?:\[(?P<named>[^\]]*)\])?\s*@\s*)?"
    r"(?:file:(?=\.))?(?P<path>\.{1,2}(?:/[^\s\[;]*)?|/[^\s\[;]*|file:[^\s\[;]*|[A-Za-z0-9._-]+/[^\s\[;@]*"
    r"|(?(editable)[A-Za-z0-9._-]+|(?!)))"
    r"(?:\[(?P<extras>[^\]]*)\])?\s*(?:;(?P<marker>.*))?$"
)
# pip reads an option as a shell does.
_QUOTED = re.compile(r"((?:-[erc]|--(?:editable|requirement|constraint))[\s=]*)([\"'])(\S+)\2(?=\s|$)")
# A URL that is not of a file.
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:")
_MAX_FILES = 32
_ADDED = "spec.build.requirements of the Project"
_ADDED_URLS = ("https://", "git+https://")


@dataclass(frozen=True)
class LocalRequirement:
    """A directory or archive in a requirements file, relative to that file's directory `base`."""

    origin: str
    base: str
    target: str
    extras: tuple[str, ...] = ()
    marker: Marker | None = None


@dataclass
class Requirements:
    """`lines` and `constraints` for pip; `local` are those that name a path (`-e .`, `./libs/x`)."""

    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    local: list[LocalRequirement] = field(default_factory=list)


def read_requirements(files: Files, path: str) -> Requirements:
    """Return what `pip install -r path` would read. Raises PlanError(ConfigInvalid) naming file and line."""
    requirements = Requirements()
    visited: set[tuple[str, bool]] = set()
    base = posixpath.dirname(path)
    pending = [(path, False)]
    while pending:
        current, constraint = pending.pop(0)
        if (current, constraint) in visited:
            continue
        visited.add((current, constraint))
        if len(visited) > _MAX_FILES:
            raise PlanError(
                CONFIG_INVALID, f"{path} includes more than {_MAX_FILES} files", "Merge some of them."
            )
        for number, line in logical_lines(text_of(files, current)):
            line = _QUOTED.sub(r"\1\3", line) if line.startswith("-") else line
            nested = _NESTED.match(line)
            if nested:
                target = _resolve_nested(files, current, number, nested["path"])
                pending.append((target, constraint or nested[1] in ("-c", "--constraint")))
                continue
            local = _LOCAL.match(line)
            if local:
                listed = f"{local['named'] or ''},{local['extras'] or ''}".split(",")
                extras = tuple(part.strip() for part in listed if part.strip())
                # pip takes the paths of every file relative to its working directory.
                origin = f"{current} line {number}"
                marker = _marker(local["marker"], origin)
                requirements.local.append(LocalRequirement(origin, base, local["path"], extras, marker))
                continue
            (requirements.constraints if constraint else requirements.lines).append(line)
    return requirements


def logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the significant lines with their numbers: continuations joined, comments removed."""
    lines: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start if pending else number
        comment = raw.lstrip().startswith("#")
        if raw.endswith("\\") and not comment:
            pending += raw[:-1]
            continue
        joined = f"{pending} {raw}" if comment else pending + raw
        if line := _clean(joined):
            lines.append((start, line))
        pending = ""
    if line := _clean(pending):
        lines.append((start, line))
    return lines


def _clean(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())


def path_of(requirement: Requirement) -> str:
    """Return the path that a requirement names instead of an address, as `x @ file:libs/x`; else nothing."""
    url = requirement.url or ""
    if _ADDRESS.match(url):
        return ""
    return url if url.startswith("file:/") else url.removeprefix("file:")


def package_name(line: str) -> str | None:
    """Return the normalized package name of a requirement, or None for an option or URL."""
    match = re.match(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[<>=!~;@,(\s])", line)
    return canonicalize_name(match[1]) if match else None


def check_added(lines: Iterable[str], local_names: Collection[str]) -> None:
    """Raise PlanError(ConfigInvalid) for a line that is not a package, or is one of the repository.

    An index could have another package with the name of a project of the repository.
    """
    for line in lines:
        try:
            requirement = Requirement(line)
            if requirement.url and not requirement.url.startswith(_ADDED_URLS):
                raise InvalidRequirement(line)
        except InvalidRequirement:
            raise PlanError(
                CONFIG_INVALID,
                f"{_ADDED} has {line[:200]!r}, which is not a package",
                "Write it as in requirements.txt.",
            ) from None
        if canonicalize_name(requirement.name) in local_names:
            raise PlanError(
                CONFIG_INVALID,
                f"{_ADDED} has {requirement.name}, which is a project of the repository",
                "Remove it there.",
            )


def _marker(text: str | None, origin: str) -> Marker | None:
    if text is None:
        return None
    try:
        return Marker(text)
    except InvalidMarker:
        raise PlanError(
            CONFIG_INVALID,
            f"{origin}: {text.strip()[:200]!r} is not a valid marker",
            "For example: sys_platform == 'linux'.",
        ) from None


def _resolve_nested(files: Files, current: str, number: int, target: str) -> str:
    nested_path = posixpath.normpath(posixpath.join(posixpath.dirname(current), target))
    if nested_path not in files:
        raise PlanError(
            CONFIG_INVALID,
            f"{current} line {number}: {target} is not a file of the source",
            "Add the file, or remove the line.",
        )
    return nested_path
