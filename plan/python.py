"""Which Python a crew gets, of those that the installation offers. Called by plan.make."""

import re
from collections.abc import Sequence

from .config.configuration import Configuration
from .config.toml_tables import read_toml
from .errors import CONFIG_INVALID, PlanError, listed
from .source import Files

_CLAUSE = re.compile(r"(~=|===?|!=|<=|>=|<|>)\s*v?(\d+)(?:\.(\d+))?((?:\.\d+)*)(\.\*)?")


def choose_python(files: Files, configuration: Configuration, offered: Sequence[str]) -> str:
    """The configured version, or the first of `offered` that `requires-python` in pyproject.toml allows.

    Raises PlanError(ConfigInvalid) naming `offered` where none of them will do.
    """
    if not offered:
        raise PlanError(
            CONFIG_INVALID,
            "this installation offers no Python version at all",
            "Ask an administrator to set CREWYARD_BASE_IMAGES.",
        )
    declared = configuration.python
    if declared is not None:
        if declared not in offered:
            raise PlanError(
                CONFIG_INVALID,
                f"{configuration.python_origin} is {declared!r}; offered here: {listed(list(offered))}",
                "Choose one of those, or leave it out.",
            )
        return declared
    project = read_toml(files, "pyproject.toml").table("project") if "pyproject.toml" in files else None
    wanted = project.word("requires-python", ">=3.11") if project else None
    if project is None or wanted is None:
        return offered[0]
    for version in offered:
        if allows(wanted, version):
            return version
    raise project.wrong(
        "requires-python",
        f"is {wanted!r}; offered here: {listed(list(offered))}",
        "Widen it so that it allows one of those.",
    )


def allows(specifier: str, version: str) -> bool:
    """Whether some release of `version` (such as 3.11) meets `specifier`; clauses we cannot read are met.

    Base images have the latest release of a version, so 3.11 meets `>=3.11.4` and `<3.11.9` alike.
    """
    major, _, minor = version.partition(".")
    have = (int(major), int(minor or 0))
    return all(_meets(clause.strip(), have) for clause in specifier.split(","))


def _meets(clause: str, have: tuple[int, int]) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        return True
    operator, major, minor, patch, star = found.groups()
    want = (int(major), int(minor or 0))
    exact = minor is not None
    same = have == want if exact else have[0] == want[0]
    match operator:
        case ">=" | ">":
            return have >= want
        case "<=" | "<":  # 3.11.9 is more than 3.11
            return have < want or bool(patch.strip(".0") and have == want)
        case "~=":
            return have == want if patch else have[0] == want[0] and have >= want
        case "!=":
            return not (same and star and not patch)
    return same
