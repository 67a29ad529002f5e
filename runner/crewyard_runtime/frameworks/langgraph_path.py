"""Puts the directories of langgraph.json on the path, as LangGraph's tools do. Called by `crew`."""

from __future__ import annotations

import json
import os
import sys

_MAX_FILE_BYTES = 1 << 20


def add_directories(app: str) -> None:
    """Append to sys.path the directories in `dependencies`, or the parent of one that is a package.

    An installed project is found before its directory.
    """
    try:
        with open(os.path.join(app, "langgraph.json"), "rb") as file:
            values = json.loads(file.read(_MAX_FILE_BYTES))  # as bytes: it may have a byte order mark
    except (OSError, ValueError, RecursionError):
        return  # the file is optional, and the build has checked it
    named = values.get("dependencies") if isinstance(values, dict) else None
    for item in named if isinstance(named, list) else ():
        path = str(item).replace("\\", "/")
        directory = os.path.normpath(os.path.join(app, path))
        if not (path.startswith(".") and directory.startswith(app + os.sep)):
            continue
        if os.path.exists(os.path.join(directory, "__init__.py")):
            directory = os.path.dirname(directory)
        if directory not in sys.path:
            sys.path.append(directory)
