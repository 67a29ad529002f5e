"""Reading of a fetched commit into a checked tree. Called by build.source.fetch_git.

No checkout, hooks or filters: reads blobs from the object database. A submodule becomes the files of its
commit, a symbolic link a copy of the file or directory of its repository that it points to, and a pointer of
Git LFS the file that it stands for, where its server has it. A link that points to neither is left out.
"""

import io
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pygit2

from build.errors import CONTEXT_INVALID, GIT_NOT_FOUND, BuildRefused
from build.logs import BuildLog
from build.settings import GitSource, SourceLimits
from build.source.git_fetcher import GitFetcher
from build.source.lfs.downloads import LfsDownloads
from build.source.submodules.fetches import Checkout, SubmoduleFetches
from build.source.tree import CheckedSourceTree, TreeBuilder, checked_path
from egress.git.repository_url import printable
from egress.git.source_path import normalized_path, tree_at
from plan.lfs_pointer import MAX_POINTER_BYTES, LfsPointer, read_pointer

# The maximum length of a path on Linux.
_MAX_LINK_BYTES = 4095
# Of links to links, and of links in linked directories.
_MAX_LINKS = 8


def read_tree(
    repository: pygit2.Repository,
    source: GitSource,
    limits: SourceLimits,
    log: BuildLog,
    fetcher: GitFetcher | None = None,
) -> CheckedSourceTree:
    """Return the files of the commit below `source.path`, with what `fetcher` fetches for them.

    Raises BuildRefused or InfrastructureError.
    """
    try:
        return _read(repository, source, limits, log, fetcher)
    except (KeyError, ValueError, pygit2.GitError):
        # Not every server validates every pushed object.
        raise BuildRefused(
            CONTEXT_INVALID,
            f"commit {source.commit} is damaged: some of its files cannot be read",
            "Check it with `git fsck --full` and push it again.",
        ) from None


@dataclass(frozen=True)
class _Directory:
    """A directory to read: its path in the source, its tree, its path in its checkout, links on the way."""

    checkout: Checkout
    path: str
    tree: Any
    real_path: str
    links: int = 0


def _read(
    repository: pygit2.Repository,
    source: GitSource,
    limits: SourceLimits,
    log: BuildLog,
    fetcher: GitFetcher | None,
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
    reader = _TreeReader(limits, log, fetcher)
    reader.read(_Directory(Checkout(repository, root, source.url), "", tree, subdirectory))
    return reader.finish()


@dataclass(frozen=True)
class _PointerFile:
    """A file of Git LFS: its paths in the source and in its checkout, and what the repository has of it."""

    checkout: Checkout
    path: str
    real_path: str
    data: bytes
    pointer: LfsPointer
    executable: bool


class _TreeReader:
    """The files of one source so far. `fetcher` is None where nothing else may be fetched."""

    def __init__(self, limits: SourceLimits, log: BuildLog, fetcher: GitFetcher | None) -> None:
        self._builder, self._log, self._fetcher = TreeBuilder(limits), log, fetcher
        self._submodules = SubmoduleFetches(fetcher) if fetcher else None
        self._pointers: list[_PointerFile] = []

    def read(self, directory: _Directory) -> None:
        """Add all files below the directory."""
        pending = [directory]
        while pending:
            current = pending.pop()
            for item in current.tree:
                self._builder.count_entry()
                below = self._read_entry(current, item)
                if below:
                    pending.append(below)

    def finish(self) -> CheckedSourceTree:
        """Add the files of Git LFS; return the tree. Raises BuildRefused or InfrastructureError."""
        # Two submodules may be two commits of one repository.
        by_checkout: dict[int, list[_PointerFile]] = {}
        for file in self._pointers:
            by_checkout.setdefault(id(file.checkout), []).append(file)
        downloads = LfsDownloads(self._fetcher) if self._fetcher else None
        for files in by_checkout.values():
            assert downloads is not None
            found = downloads.download(files[0].checkout, {file.real_path: file.pointer for file in files})
            for file in files:
                self._add_large(file, found[file.real_path])
        return self._builder.finish()

    def _add_large(self, file: _PointerFile, found: Path | str) -> None:
        if isinstance(found, str):
            self._log.line(f"{printable(file.path)} stays a pointer of Git LFS: {found}")
            self._builder.add(file.path, io.BytesIO(file.data), file.executable)
            return
        self._builder.check_room(file.pointer.size)
        with found.open("rb") as stream:
            self._builder.add(file.path, stream, file.executable)

    def _read_entry(self, current: _Directory, item: Any) -> _Directory | None:
        """Add a file; return a directory or a submodule to read."""
        path, links, checkout = posixpath.join(current.path, item.name), current.links, current.checkout
        real_path = posixpath.join(current.real_path, item.name)
        if item.filemode == pygit2.enums.FileMode.LINK:
            checked_path(path)
            target = _link_target(checkout.repository, checkout.root, real_path, item, links)
            if target is None:
                self._log.line(
                    f"{printable(path)} is a symbolic link that does not point to a file or directory of the "
                    "repository: left out"
                )
                return None
            (item, real_path), links = target, links + 1
        if item.filemode == pygit2.enums.FileMode.TREE:
            checked_path(path)
            return _Directory(checkout, path, item, real_path, links)
        if item.filemode == pygit2.enums.FileMode.COMMIT:
            return self._submodule(checkout, path, real_path, str(item.id))
        self._add_file(checkout, path, real_path, item)
        return None

    def _submodule(self, checkout: Checkout, path: str, real_path: str, commit: str) -> _Directory | None:
        if self._submodules is None:
            self._log.line(f"{printable(path)} is a submodule: not fetched")
            return None
        checked_path(path)
        opened = self._submodules.open(checkout, real_path, path, commit)
        return _Directory(opened, path, opened.root, "") if opened else None

    def _add_file(self, checkout: Checkout, path: str, real_path: str, item: Any) -> None:
        executable = item.filemode == pygit2.enums.FileMode.BLOB_EXECUTABLE
        # Check the size first: a small pack may contain an enormous object.
        size = checkout.repository.odb.read_header(item.id)[1]
        self._builder.check_room(size)
        data = item.data
        pointer = read_pointer(data) if size <= MAX_POINTER_BYTES and self._fetcher else None
        if pointer:
            file = _PointerFile(checkout, checked_path(path), real_path, data, pointer, executable)
            self._pointers.append(file)
        else:
            self._builder.add(path, io.BytesIO(data), executable)


def _link_target(repository: Any, root: Any, real_path: str, link: Any, links: int) -> tuple[Any, str] | None:
    """Return the file or directory of the repository that a symbolic link points to, and its path there."""
    item, path, below = link, real_path, ""
    for _ in range(_MAX_LINKS - links):
        if repository.odb.read_header(item.id)[1] > _MAX_LINK_BYTES:
            return None  # checked before the read: a small pack may contain an enormous object
        target = item.data.decode("utf-8", "replace")
        target_path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target, below))
        if target.startswith("/") or target_path.partition("/")[0] in ("..", "."):
            return None
        if f"{real_path}/".startswith(f"{target_path}/"):
            return None  # the directory contains the link
        found = _first_link(root, target_path)
        if found is None:
            return None
        item, path, below = found
        if item.filemode != pygit2.enums.FileMode.LINK:
            return item, path
    return None


def _first_link(root: Any, path: str) -> tuple[Any, str, str] | None:
    """Return the first symbolic link on the way to a path, its path, and what follows; else the item there.

    None if it is neither a file nor a directory.
    """
    item, names = root, path.split("/")
    for number, name in enumerate(names, 1):
        if not isinstance(item, pygit2.Tree) or name not in item:
            return None
        item = item[name]
        if item.filemode == pygit2.enums.FileMode.LINK:
            return item, "/".join(names[:number]), "/".join(names[number:])
    return (item, path, "") if isinstance(item, pygit2.Tree | pygit2.Blob) else None
