"""Choice of a crew's Python version. Called by plan.make."""

import re
from collections.abc import Sequence

from .config.configuration import Configuration
from .config.toml_tables import TomlTable, read_toml
from .errors import CONFIG_INVALID, PlanError, join_limited
from .packages.poetry_table import pep440
from .source import Files

_POETRY_KEY = "python"
_CLAUSE = re.compile(r"(~=|===?|!=|<=|>=|<|>)\s*v?(\d+)(?:\.(\d+))?((?:\.\d+)*)(\.\*)?")


def choose_python(files: Files, configuration: Configuration, python_versions: Sequence[str]) -> str:
    """Return the configured version, else the first offered one that pyproject's `requires-python` allows.

    Raises PlanError(ConfigInvalid) with the offered versions where none matches.
    """
    if not python_versions:
        raise PlanError(
            CONFIG_INVALID,
            "this installation offers no Python version",
            "Ask an administrator to set CREWYARD_BASE_IMAGES.",
        )
    declared = configuration.python
    if declared is not None:
        if declared not in python_versions:
            raise PlanError(
                CONFIG_INVALID,
                f"{configuration.python_origin} is {declared!r}; "
                f"offered here: {join_limited(list(python_versions))}",
                "Choose one of those, or omit it.",
            )
        return declared
    table, key = _required_python(files)
    required = table.text_at(key, ">=3.11") if table else None
    if table is None or required is None:
        return python_versions[0]
    try:
        specifier = pep440(required) if key == _POETRY_KEY else required
    except ValueError:
        return python_versions[0]
    for version in python_versions:
        if allows(specifier, version):
            return version
    raise table.error(
        key,
        f"is {required!r}; offered here: {join_limited(list(python_versions))}",
        "Widen it so that it allows one of those.",
    )


def _required_python(files: Files) -> tuple[TomlTable | None, str]:
    """Return the table and the key with the project's Python versions."""
    if "pyproject.toml" not in files:
        return None, ""
    root = read_toml(files, "pyproject.toml")
    project, table = root.table("project"), root
    if project and "requires-python" in project.values:
        return project, "requires-python"
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
