"""Reading of a fetched commit into a checked tree. Called by build.source.fetch_git.

No checkout, hooks or filters: reads blobs from the object database. Does not follow submodules and LFS
pointers; a symbolic link becomes a copy of the file or directory of the repository that it points to.
"""

import io
import posixpath
from dataclasses import dataclass
from typing import Any

import pygit2

from build.errors import CONTEXT_INVALID, GIT_NOT_FOUND, BuildRefused
from build.logs import BuildLog
from build.settings import GitSource, SourceLimits
from build.source.tree import CheckedSourceTree, TreeBuilder, checked_path
from egress.git.repository_url import printable
from egress.git.source_path import normalized_path, tree_at

# The maximum length of a path on Linux.
_MAX_LINK_BYTES = 4095
# Of links to links, and of links in linked directories.
_MAX_LINKS = 8


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


@dataclass(frozen=True)
class _Directory:
    """A directory to read: its path in the source, its tree, its path in the repository, links on the way."""

    path: str
    tree: Any
    real_path: str
    links: int = 0


def _read(
    repository: pygit2.Repository, source: GitSource, limits: SourceLimits, log: BuildLog
) -> CheckedSourceTree:
    root: Any = repository[source.commit].peel(pygit2.Tree)
    subdirectory = normalized_path(source.path)
    tree = tree_at(root, subdirectory)
    if tree is None:
        raise BuildRefused(
            GIT_NOT_FOUND,
            f"commit {source.commit} has no directory {source.path!r}",
            "Check the project's source.git.path.",
        )
    builder = TreeBuilder(limits)
    pending = [_Directory("", tree, subdirectory)]
    while pending:
        current = pending.pop()
        for item in current.tree:
            builder.count_entry()
            path, links = posixpath.join(current.path, item.name), current.links
            real_path = posixpath.join(current.real_path, item.name)
            if item.filemode == pygit2.enums.FileMode.LINK:
                checked_path(path)
                item, real_path = _resolve_link(repository, root, path, real_path, item, links)
                links += 1
            if item.filemode == pygit2.enums.FileMode.TREE:
                checked_path(path)
                pending.append(_Directory(path, item, real_path, links))
            elif item.filemode == pygit2.enums.FileMode.COMMIT:
                log.line(f"{printable(path)} is a submodule: not fetched")
            else:
                executable = item.filemode == pygit2.enums.FileMode.BLOB_EXECUTABLE
                # Check the size first: a small pack may contain an enormous object.
                builder.check_room(repository.odb.read_header(item.id)[1])
                builder.add(path, io.BytesIO(item.data), executable)
    return builder.finish()


def _resolve_link(
    repository: Any, root: Any, path: str, real_path: str, link: Any, links: int
) -> tuple[Any, str]:
    """Return the file or directory of the repository that a symbolic link points to, and its path there."""
    target_path, item = real_path, link
    for _ in range(_MAX_LINKS - links):
        if repository.odb.read_header(item.id)[1] > _MAX_LINK_BYTES:
            break  # checked before the read: a small pack may contain an enormous object
        target = item.data.decode("utf-8", "replace")
        target_path = posixpath.normpath(posixpath.join(posixpath.dirname(target_path), target))
        if target.startswith("/") or target_path.partition("/")[0] in ("..", "."):
            break
        if f"{real_path}/".startswith(f"{target_path}/"):
            break  # the directory contains the link
        try:
            item = root[target_path]
        except (KeyError, ValueError):
            break
        if isinstance(item, pygit2.Tree):
            return item, target_path
        if not isinstance(item, pygit2.Blob):
            break
        if item.filemode != pygit2.enums.FileMode.LINK:
            return item, target_path
    raise BuildRefused(
        CONTEXT_INVALID,
        f"{printable(path)} is a symbolic link that does not point to a file or directory of the repository",
        "Replace the link with a copy of its target, or remove it.",
    )
