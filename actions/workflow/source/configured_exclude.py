"""`[build] exclude` of the crew's configuration, as the service reads it. Called by the action `deploy`."""

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from actions.workflow.client.sse import as_object
from actions.workflow.errors import StepFailed
from actions.workflow.source.exclude_patterns import NO_PATTERNS, ExcludePatterns

CONFIGURATION_FILES = ("crew.toml", "crewship.toml", "langgraph.json", "pyproject.toml")
"""In the order in which the service looks for one; they are packed also where a pattern matches them."""
_ONLY_ARTIFACTS = {"artifacts"}
_MAX_PATTERNS = 100


def configured_exclude(directory: Path, tracked: Collection[str]) -> ExcludePatterns:
    """Return the patterns of the configuration; none if it is invalid, which the build reports."""
    try:
        patterns = _patterns(_configuration(directory.resolve(), tracked))
        return ExcludePatterns(patterns) if len(patterns) <= _MAX_PATTERNS else NO_PATTERNS
    except (StepFailed, OSError, ValueError, RecursionError):
        return NO_PATTERNS


def _configuration(root: Path, tracked: Collection[str]) -> dict[str, Any]:
    """Return the tables of the first configuration. Raises OSError and ValueError."""
    for name in CONFIGURATION_FILES:
        if name not in tracked:
            continue
        if name == "langgraph.json":
            return {}
        path = root / name
        if not path.resolve().is_relative_to(root):
            continue
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        if name == "pyproject.toml":
            tables = as_object(as_object(tables.get("tool")).get("crewyard"))
        if name == "crewship.toml" or set(tables) != _ONLY_ARTIFACTS:
            return dict(tables)
    return {}


def _patterns(tables: dict[str, Any]) -> list[str]:
    patterns = as_object(tables.get("build")).get("exclude")
    if not isinstance(patterns, list) or not all(isinstance(text, str) and text for text in patterns):
        return []
    return patterns
