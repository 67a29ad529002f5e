"""Puts the plain directories of langgraph.json on the path, as LangGraph's tools do. Called by `crew`."""

from __future__ import annotations

import json
import os
import sys

_MAX_FILE_BYTES = 1 << 20
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")  # a directory with one of them is installed


def add_directories(app: str) -> None:
    """Append to sys.path the directories in `dependencies`, or the parent of one that is a package."""
    try:
        with open(os.path.join(app, "langgraph.json"), encoding="utf-8") as file:
            values = json.loads(file.read(_MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return  # the file is optional, and the build has checked it
    named = values.get("dependencies") if isinstance(values, dict) else None
    for item in named if isinstance(named, list) else ():
        directory = os.path.normpath(os.path.join(app, str(item)))
        if not (str(item).startswith(".") and directory.startswith(app + os.sep)):
            continue
        if any(os.path.exists(os.path.join(directory, name)) for name in _PROJECT_FILES):
            continue
        if os.path.exists(os.path.join(directory, "__init__.py")):
            directory = os.path.dirname(directory)
        if directory not in sys.path:
            sys.path.append(directory)
