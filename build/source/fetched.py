"""A fetched source. Returned by build.source.fetch."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from build.source.tree import CheckedSourceTree


class OutsideFiles(Mapping[str, bytes]):
    """Files of the repository that are not in the source, by their paths in the repository."""

    @abstractmethod
    def tree(self, directory: str) -> CheckedSourceTree:
        """Return the checked tree of a directory. Raises BuildRefused."""


@dataclass(frozen=True)
class FetchedSource:
    """The source: the directory `path` of its repository, whose other files are `outside`.

    `subject` is the first line of its commit's message.
    """

    tree: CheckedSourceTree
    path: str = ""
    outside: OutsideFiles | None = None
    subject: str = ""
