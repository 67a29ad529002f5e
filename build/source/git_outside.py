"""Files of a commit outside of the source's path, read on access. Called by build.source.fetch_git.

A crew in a monorepo may need the lock of its workspace and projects beside it. Nothing of them reaches the
image but what its configuration names.
"""

import posixpath
from collections.abc import Iterator
from typing import Any

import pygit2

from build.errors import CONTEXT_TOO_LARGE, BuildRefused
from build.settings import GitSource, SourceLimits
from build.source.fetched import OutsideFiles
from build.source.git_fetcher import GitFetcher
from build.source.git_tree import read_tree
from build.source.tree import CheckedSourceTree

_FILE_MODES = (pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.BLOB_EXECUTABLE)


class GitOutsideFiles(OutsideFiles):
    """The files of `commit` that are not below `path`, by their paths in the repository."""

    def __init__(
        self,
        repository: pygit2.Repository,
        source: GitSource,
        path: str,
        limits: SourceLimits,
        fetcher: GitFetcher,
    ) -> None:
        self._repository, self._source, self._limits, self._fetcher = repository, source, limits, fetcher
        self._root: Any = repository[source.commit].peel(pygit2.Tree)
        self._prefix = f"{path}/"

    def tree(self, directory: str) -> CheckedSourceTree:
        """Return the checked tree of a directory. Raises BuildRefused."""
        source = GitSource(self._source.url, self._source.commit, directory)
        return read_tree(self._repository, source, self._limits, self._fetcher.log, self._fetcher)

    def __getitem__(self, path: str) -> bytes:
        blob = self._blob(path)
        if blob is None:
            raise KeyError(path)
        # The size first: a small pack may contain an enormous object.
        if self._repository.odb.read_header(blob.id)[1] > self._limits.unpacked_bytes:
            raise BuildRefused(CONTEXT_TOO_LARGE, f"{path} is too large", "Make it smaller.")
        data: bytes = blob.data
        return data

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._blob(path) is not None

    def __iter__(self) -> Iterator[str]:
        pending = [("", self._root)]
        count = 0
        while pending:
            prefix, current = pending.pop()
            for item in current:
                count += 1
                if count > self._limits.entries:
                    raise BuildRefused(
                        CONTEXT_TOO_LARGE,
                        f"the repository has more than {self._limits.entries} entries",
                        "The members of a workspace cannot be found among so many; use a smaller repository.",
                    )
                path = prefix + item.name
                if item.filemode == pygit2.enums.FileMode.TREE and f"{path}/" != self._prefix:
                    pending.append((f"{path}/", item))
                elif item.filemode in _FILE_MODES:
                    yield path

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _blob(self, path: str) -> Any:
        if not path or path != posixpath.normpath(path) or path.startswith((self._prefix, "/", "..")):
            return None
        try:
            item = self._root[path]
        except (KeyError, ValueError):
            return None
        return item if item.filemode in _FILE_MODES else None
