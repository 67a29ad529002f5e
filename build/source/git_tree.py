"""The files of a fetched commit, into a checked tree. Called by build.source.fetch_git.

No checkout, no hooks, no filters: blobs are read from the objects. Submodules and large-file pointers are
not followed; a symbolic link becomes a copy of the file of the tree it points to.
"""

import io
import posixpath
from typing import Any

import pygit2

from build.errors import CONTEXT_INVALID, GIT_NOT_FOUND, Refused
from build.logs import Log
from build.settings import GitSource, Limits
from build.source.tree import SourceTree, TreeBuilder, checked_path
from egress.git.repository_url import harmless

# As long as a path can be on Linux.
_LINK_BYTES = 4095


def read_tree(repository: pygit2.Repository, source: GitSource, limits: Limits, log: Log) -> SourceTree:
    """The files of the commit below `source.path`. Raises Refused."""
    try:
        return _read(repository, source, limits, log)
    except (KeyError, ValueError, pygit2.GitError):
        # Servers check what is pushed, but not all of them, and not for everything.
        raise Refused(
            CONTEXT_INVALID,
            f"commit {source.commit} is damaged: not all of its files can be read",
            "Look at it with `git fsck --full`, and push it again.",
        ) from None


def _read(repository: pygit2.Repository, source: GitSource, limits: Limits, log: Log) -> SourceTree:
    tree: Any = repository[source.commit].peel(pygit2.Tree)
    below = posixpath.normpath(source.path.strip("/") or ".")
    if below != ".":
        try:
            tree = tree[below]
        except (KeyError, ValueError):
            tree = None
        if not isinstance(tree, pygit2.Tree):
            raise Refused(
                GIT_NOT_FOUND,
                f"commit {source.commit} has no directory {source.path!r}",
                "Check the project's source.git.path.",
            )
    builder = TreeBuilder(limits)
    waiting = [("", tree)]
    while waiting:
        prefix, current = waiting.pop()
        for item in current:
            builder.count()
            path = prefix + item.name
            if item.filemode == pygit2.enums.FileMode.TREE:
                checked_path(path)
                waiting.append((f"{path}/", item))
            elif item.filemode == pygit2.enums.FileMode.COMMIT:
                log.line(f"{harmless(path)} is a submodule: not fetched")
            else:
                if item.filemode == pygit2.enums.FileMode.LINK:
                    item = _followed(repository, tree, path, item)
                executable = item.filemode == pygit2.enums.FileMode.BLOB_EXECUTABLE
                # The size first: a small pack may hold an enormous object.
                builder.expect(repository.odb.read_header(item.id)[1])
                builder.add(path, io.BytesIO(item.data), executable)
    return builder.finish()


def _followed(repository: Any, root: Any, path: str, link: Any) -> Any:
    """The file of the tree that a symbolic link leads to, through at most 8 links."""
    place, item = path, link
    for _ in range(8):
        if repository.odb.read_header(item.id)[1] > _LINK_BYTES:
            break  # before it is read: a small pack may hold an enormous object
        target = item.data.decode("utf-8", "replace")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        if target.startswith("/") or place.partition("/")[0] == "..":
            break
        try:
            item = root[place]
        except (KeyError, ValueError):
            break
        if not isinstance(item, pygit2.Blob):
            break
        if item.filemode != pygit2.enums.FileMode.LINK:
            return item
    raise Refused(
        CONTEXT_INVALID,
        f"{harmless(path)} is a symbolic link that leads to no file of the source",
        "Replace the link by a copy of what it points to, or remove it.",
    )
