"""Entrypoints of Runs: a name of the Deployment's plan, `module:object`, or a file."""

import re
from collections.abc import Mapping
from typing import Any

_MODULE = "[A-Za-z0-9_][A-Za-z0-9_-]*"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_OBJECT = f"{_MODULE}([.]{_MODULE})*:{_IDENTIFIER}([.]{_IDENTIFIER})*"
_NAME = "[A-Za-z0-9_][A-Za-z0-9_-]*"
_FILE = "[A-Za-z0-9_][A-Za-z0-9_ ,()&+-]*([./][A-Za-z0-9_ ,()&+-]+)*[.](py|jsonc?|ya?ml)"
PATTERN = f"^({_OBJECT}|{_NAME}|{_FILE})$"


def is_name(entrypoint: str) -> bool:
    """Return whether the entrypoint can only be a name: it selects, but never names code."""
    return re.fullmatch(_NAME, entrypoint) is not None


def named(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return the entrypoints of a plan by name."""
    return dict(plan.get("entrypoints") or {})


def target(requested: str | None, plan: Mapping[str, Any]) -> str | None:
    """Return what a run calls: the plan's entrypoint, the one of the requested name, or the requested one."""
    if requested is None:
        return plan.get("entrypoint")
    return named(plan).get(requested, requested)


def problem(requested: str | None, plan: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a requested name that a known plan does not have; None if nothing is."""
    if requested is None or not is_name(requested) or not plan.get("entrypoint"):
        return None
    names = named(plan)
    if requested in names:
        return None
    if not names:
        return f"has no entrypoint {requested!r}, and none with a name; leave entrypoint out"
    return f"has no entrypoint {requested!r}; it has {', '.join(names)}"
