"""Identity of a source in a commit: equal ids mean that a build reads the same files. Called by remote.

It is the id of the tree at the path. Where the source may read files outside of its path (a workspace above
it, `..` in its declarations, a link, a submodule), the id also covers the whole repository.
"""

import hashlib
import posixpath
import re
import tomllib
from typing import Any

import pygit2

from controller.git.repository import GitProblem
from egress.git.repository_url import printable
from egress.git.source_path import normalized_path, tree_at

_DECLARATIONS = (".toml", ".txt", ".in", ".lock", "langgraph.json")
_MAX_DECLARATION_BYTES = 1 << 20
_MAX_ENTRIES = 50_000
_ABOVE = re.compile(rb"\.\./|(?:(?<![\w.])|(?<=-e))\.\.(?![\w.])")
"""The directory above in a path, also at its end (`-e ..`) or before a backslash."""


def source_tree(repository: Any, commit: pygit2.Commit, path: str) -> str:
    """Return the id of the source at `path`. Raises GitProblem if the directory does not exist."""
    root: Any = commit.tree
    normalized = normalized_path(path)
    if not normalized:
        return str(root.id)
    tree = tree_at(root, normalized)
    if tree is None:
        raise GitProblem(
            "PathNotFound",
            f"the head has no directory {printable(path)}; push it, or correct spec.source.git.path",
        )
    try:
        alone = not _in_workspace(repository, root, normalized) and not _names_outside(repository, tree)
    except (KeyError, ValueError, pygit2.GitError):
        alone = True  # a damaged commit, which the build refuses with a reason
    if alone:
        return str(tree.id)
    return hashlib.sha1(f"{normalized}\0{root.id}".encode(), usedforsecurity=False).hexdigest()


def _in_workspace(repository: Any, root: Any, path: str) -> bool:
    """Return whether a directory above `path` has the root of a uv workspace."""
    while path:
        path = posixpath.dirname(path)
        try:
            item = root[posixpath.join(path, "pyproject.toml")]
        except (KeyError, ValueError):
            continue
        if isinstance(item, pygit2.Blob) and _declares_workspace(_content(repository, item)):
            return True
    return False


def _declares_workspace(pyproject: bytes) -> bool:
    """Return whether it declares a uv workspace, or is not TOML: its correction may declare one."""
    try:
        tool = tomllib.loads(pyproject.decode("utf-8-sig")).get("tool")
    except (ValueError, RecursionError):
        return True
    uv = tool.get("uv") if isinstance(tool, dict) else None
    return isinstance(uv, dict) and "workspace" in uv


def _names_outside(repository: Any, tree: Any) -> bool:
    """Return whether a file, a link or a submodule names what is above, or there are too many to tell."""
    pending, count = [tree], 0
    while pending:
        for item in pending.pop():
            count += 1
            if count > _MAX_ENTRIES:
                return True
            if isinstance(item, pygit2.Tree):
                pending.append(item)
            elif item.filemode == pygit2.enums.FileMode.COMMIT:
                return True  # a submodule, whose URL is in .gitmodules of the root
            elif isinstance(item, pygit2.Blob) and _names_above(repository, item):
                return True
    return False


def _names_above(repository: Any, blob: Any) -> bool:
    """Return whether a link or a declaration names the directory above one."""
    is_link = blob.filemode == pygit2.enums.FileMode.LINK
    if not is_link and not str(blob.name).endswith(_DECLARATIONS):
        return False
    return _ABOVE.search(_content(repository, blob)) is not None


def _content(repository: Any, blob: Any) -> bytes:
    """Return the content of a blob; empty above the size of a declaration."""
    # The header first: a small pack may contain an enormous object.
    if repository.odb.read_header(blob.id)[1] > _MAX_DECLARATION_BYTES:
        return b""
    data: bytes = blob.data
    return data
