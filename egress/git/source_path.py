"""The directory of a repository that a source names, decided alike by controller and build pods."""

import posixpath
from typing import Any

import pygit2


def normalized_path(path: str) -> str:
    """Return the path of a directory in its repository; empty for the root."""
    normalized = posixpath.normpath(path.strip("/") or ".")
    return "" if normalized == "." else normalized


def tree_at(root: Any, path: str) -> Any:
    """Return the tree at a normalized path below the tree `root`; None if it is not a directory."""
    if not path:
        return root
    try:
        tree = root[path]
    except (KeyError, ValueError):
        return None
    return tree if isinstance(tree, pygit2.Tree) else None
