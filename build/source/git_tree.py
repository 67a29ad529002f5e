"""Reading of a fetched commit into a checked tree. Called by build.source.fetch_git.

No checkout, hooks or filters: reads blobs from the object database. Does not follow submodules and LFS
pointers; a symbolic link becomes a copy of the file of the tree that it points to.
"""

import io
import posixpath
from typing import Any

import pygit2

from build.errors import CONTEXT_INVALID, GIT_NOT_FOUND, BuildRefused
from build.logs import BuildLog
from build.settings import GitSource, SourceLimits
from build.source.tree import CheckedSourceTree, TreeBuilder, checked_path
from egress.git.repository_url import printable

# The maximum length of a path on Linux.
_MAX_LINK_BYTES = 4095


def read_tree(
    repository: pygit2.Repository, source: GitSource, limits: SourceLimits, log: BuildLog
) -> CheckedSourceTree:
    """Return the files of the commit below `source.path`. Raises BuildRefused."""
    try:
        return _read(repository, source, limits, log)
    except (KeyError, ValueError, pygit2.GitError):
        # Not every server validates every pushed object.
        raise BuildRefused(
            CONTEXT_INVALID,
            f"commit {source.commit} is damaged: some of its files cannot be read",
            "Check it with `git fsck --full` and push it again.",
        ) from None


def _read(
    repository: pygit2.Repository, source: GitSource, limits: SourceLimits, log: BuildLog
) -> CheckedSourceTree:
    tree: Any = repository[source.commit].peel(pygit2.Tree)
    subdirectory = posixpath.normpath(source.path.strip("/") or ".")
    if subdirectory != ".":
        try:
            tree = tree[subdirectory]
        except (KeyError, ValueError):
            tree = None
        if not isinstance(tree, pygit2.Tree):
            raise BuildRefused(
                GIT_NOT_FOUND,
                f"commit {source.commit} has no directory {source.path!r}",
                "Check the project's source.git.path.",
            )
    builder = TreeBuilder(limits)
    pending = [("", tree)]
    while pending:
        prefix, current = pending.pop()
        for item in current:
            builder.count_entry()
            path = prefix + item.name
            if item.filemode == pygit2.enums.FileMode.TREE:
                checked_path(path)
                pending.append((f"{path}/", item))
            elif item.filemode == pygit2.enums.FileMode.COMMIT:
                log.line(f"{printable(path)} is a submodule: not fetched")
            else:
                if item.filemode == pygit2.enums.FileMode.LINK:
                    item = _resolve_link(repository, tree, path, item)
                executable = item.filemode == pygit2.enums.FileMode.BLOB_EXECUTABLE
                # Check the size first: a small pack may contain an enormous object.
                builder.check_room(repository.odb.read_header(item.id)[1])
                builder.add(path, io.BytesIO(item.data), executable)
    return builder.finish()


def _resolve_link(repository: Any, root: Any, path: str, link: Any) -> Any:
    """Return the file of the tree that a symbolic link points to, through at most 8 links."""
    target_path, item = path, link
    for _ in range(8):
        if repository.odb.read_header(item.id)[1] > _MAX_LINK_BYTES:
            break  # checked before the read: a small pack may contain an enormous object
        target = item.data.decode("utf-8", "replace")
        target_path = posixpath.normpath(posixpath.join(posixpath.dirname(target_path), target))
        if target.startswith("/") or target_path.partition("/")[0] == "..":
            break
        try:
            item = root[target_path]
        except (KeyError, ValueError):
            break
        if not isinstance(item, pygit2.Blob):
            break
        if item.filemode != pygit2.enums.FileMode.LINK:
            return item
    raise BuildRefused(
        CONTEXT_INVALID,
        f"{printable(path)} is a symbolic link that does not point to a file of the source",
        "Replace the link with a copy of its target, or remove it.",
    )
