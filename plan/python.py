"""Choice of a crew's Python version. Called by plan.make."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .config.configuration import Configuration
from .config.toml_tables import TomlTable, read_toml
from .errors import CONFIG_INVALID, PlanError, join_limited
from .packages.poetry_table import pep440
from .source import Files

_POETRY_KEY = "python"
_PROJECT_KEY = "requires-python"
_OFFER_HINT = "The operator of the service can offer more (CREWYARD_BASE_IMAGES)."
VERSION = re.compile(r"3\.\d{1,2}")
"""A version of Python as an installation offers it, such as 3.11."""
_PREFERENCE = re.compile(r"3\.(\d{1,2})(?=[.-]|$)")  # also 3.12-bookworm, as LangGraph's tools take it
_CLAUSE = re.compile(r"(~=|===?|!=|<=|>=|<|>)\s*v?(\d+)(?:\.(\d+))?((?:\.\d+)*)(\.\*)?")


@dataclass(frozen=True)
class PythonChoice:
    """The version, such as 3.11, and notes for the build log."""

    version: str
    notes: tuple[str, ...] = ()


def choose_python(
    files: Files,
    configuration: Configuration,
    python_versions: Sequence[str],
    inline: TomlTable | None = None,
    directories: Sequence[str] = (),
) -> PythonChoice:
    """Return the configured version, else the first offered one that `requires-python` allows.

    That is the key of the script's metadata `inline`, else of the first pyproject.toml that has it, in
    `directories` and then in the root. A version that is only a preference gives the nearest allowed one.
    Raises PlanError(ConfigInvalid) with the offered versions where none matches.
    """
    if not python_versions:
        raise PlanError(
            CONFIG_INVALID,
            "this installation offers no Python version",
            "Ask the operator to set CREWYARD_BASE_IMAGES.",
        )
    declared, origin = configuration.python, configuration.python_origin
    if declared is not None and declared in python_versions and not configuration.python_is_preference:
        return PythonChoice(declared)
    preference = (
        _PREFERENCE.match(declared) if declared is not None and configuration.python_is_preference else None
    )
    if declared is not None and preference is None:
        raise PlanError(
            CONFIG_INVALID,
            f"{origin} is {declared!r}; offered here: {join_limited(list(python_versions))}",
            f"Choose one of those, or omit it. {_OFFER_HINT}",
        )
    allowed = _allowed(files, python_versions, inline, directories)
    if preference is None:
        return PythonChoice(allowed[0])
    nearest = _nearest(int(preference[1]), allowed)
    if nearest == preference[0]:
        return PythonChoice(nearest)
    if preference[0] in python_versions:
        note = f"{origin} is {declared!r}, which pyproject.toml does not allow: built for {nearest}"
    else:
        note = f"{origin} is {declared!r}, not offered here: built for the nearest, {nearest}. {_OFFER_HINT}"
    return PythonChoice(nearest, (note,))


def _allowed(
    files: Files, python_versions: Sequence[str], inline: TomlTable | None, directories: Sequence[str]
) -> list[str]:
    """Return the offered versions that the script or project allows. Raises PlanError(ConfigInvalid)."""
    found = (_required_python(files, directory) for directory in (*directories, ""))
    table, key = next((each for each in found if each[0] and each[1] in each[0].values), (None, ""))
    if inline and _PROJECT_KEY in inline.values:
        table, key = inline, _PROJECT_KEY
    required = table.text_at(key, ">=3.11") if table else None
    if table is None or required is None:
        return list(python_versions)
    try:
        specifier = pep440(required) if key == _POETRY_KEY else required
    except ValueError:
        return list(python_versions)
    allowed = [version for version in python_versions if allows(specifier, version)]
    if not allowed:
        raise table.error(
            key,
            f"is {required!r}; offered here: {join_limited(list(python_versions))}",
            f"Widen it so that it allows one of those. {_OFFER_HINT}",
        )
    return allowed


def _nearest(minor: int, versions: Sequence[str]) -> str:
    """Return the version with the nearest minor number, the newer of two."""
    minors = {version: int(version.partition(".")[2] or 0) for version in versions}
    return min(versions, key=lambda version: (abs(minors[version] - minor), -minors[version]))


def _required_python(files: Files, directory: str) -> tuple[TomlTable | None, str]:
    """Return the table and the key with the Python versions of the project in the directory."""
    path = posixpath.join(directory, "pyproject.toml")
    if path not in files:
        return None, ""
    root = read_toml(files, path)
    project, table = root.table("project"), root
    if project and _PROJECT_KEY in project.values:
        return project, _PROJECT_KEY
    for name in ("tool", "poetry", "dependencies"):
        found = table.table(name)
        if found is None:
            return None, ""
        table = found
    return table, _POETRY_KEY


def allows(specifier: str, version: str) -> bool:
    """Return whether a release of `version` (such as 3.11) meets `specifier`; unknown clauses count as met.

    Base images have the latest patch release; 3.11 therefore meets both `>=3.11.4` and `<3.11.9`.
    """
    major, _, minor = version.partition(".")
    version_tuple = (int(major), int(minor or 0))
    return all(_meets(clause.strip(), version_tuple) for clause in specifier.split(","))


def _meets(clause: str, version: tuple[int, int]) -> bool:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        return True
    operator, major, minor, patch, star = match.groups()
    required = (int(major), int(minor or 0))
    exact = minor is not None
    same = version == required if exact else version[0] == required[0]
    match operator:
        case ">=" | ">":
            return version >= required
        case "<=" | "<":  # 3.11.9 is more than 3.11
            return version < required or bool(patch.strip(".0") and version == required)
        case "~=":
            return version == required if patch else version[0] == required[0] and version >= required
        case "!=":
            return not (same and star and not patch)
    return same
