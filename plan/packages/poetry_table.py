"""Requirements in Poetry's notation (`^1.2`, `~1.2`, `1.*`). Called by plan.packages.project_table."""

import re
from collections.abc import Mapping
from typing import Any

from packaging.requirements import Requirement

_CARET_OR_TILDE = re.compile(r"(\^|~(?!=))\s*v?(\d+(?:\.\d+)*)(\S*)")
_BARE = re.compile(r"=?\s*v?(\d[\w.+!-]*(?:\.\*)?)")


def poetry_requirement(name: str, option: str | Mapping[str, Any]) -> Requirement:
    """Return one line of [tool.poetry.dependencies]. Raises ValueError or TypeError where it is invalid."""
    values: Mapping[str, Any] = {"version": option} if isinstance(option, str) else option
    extras = ",".join(values.get("extras", ()))
    line = (f"{name}[{extras}]" if extras else name) + pep440(values.get("version", ""))
    markers = [values.get("markers"), _python_marker(values.get("python", ""))]
    if values.get("platform"):
        markers.append(f"sys_platform == '{values['platform']}'")
    marker = " and ".join(f"({text})" for text in markers if text)
    return Requirement(f"{line} ; {marker}" if marker else line)


def pep440(constraint: str) -> str:
    """Return a constraint of Poetry as a specifier of PEP 440; empty for any version."""
    if "|" in constraint:
        raise ValueError(f"{constraint!r} has alternatives; write one range, or use [project] dependencies")
    clauses = [_clause(text.strip()) for text in re.split(r",|(?<=[\w*])\s+(?=[<>=!^~])", constraint)]
    return ",".join(clause for clause in clauses if clause)


def _clause(text: str) -> str:
    if text in ("", "*"):
        return ""
    match = _CARET_OR_TILDE.fullmatch(text)
    if match:
        parts = [int(part) for part in match[2].split(".")]
        at = _last_fixed(match[1], parts)
        upper = [*parts[:at], parts[at] + 1]
        return f">={match[2]}{match[3]},<{'.'.join(map(str, upper))}"
    if _BARE.fullmatch(text):
        return f"=={text.lstrip('=v ')}"
    return text


def _last_fixed(operator: str, parts: list[int]) -> int:
    """Return the index of the part that the upper bound raises."""
    if operator == "~":
        return min(1, len(parts) - 1)
    return next((at for at, part in enumerate(parts) if part), len(parts) - 1)


def _python_marker(constraint: str) -> str:
    clauses = [re.fullmatch(r"([<>=!~]+)\s*(.+)", clause) for clause in pep440(constraint).split(",")]
    return " and ".join(
        f"python_{'full_' if match[2].count('.') > 1 else ''}version {match[1]} '{match[2]}'"
        for match in clauses
        if match
    )
