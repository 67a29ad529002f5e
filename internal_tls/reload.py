"""A value that is loaded from files of a mounted Secret or ConfigMap, and again when these change.

Called by `internal_tls.certificate` and `controller.pods.authority_file`.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Content = TypeVar("Content")
Value = TypeVar("Value")


class ReloadedFiles(Generic[Content, Value]):
    """The last valid value. Files that become invalid change nothing.

    `read` returns the files' content, `load` the value of it. Both raise ValueError.
    """

    def __init__(self, read: Callable[[], Content], load: Callable[[Content], Value]) -> None:
        """Load the value. Raises ValueError."""
        self._read, self._load = read, load
        self._content = read()
        self.current = load(self._content)
        self.problem: str | None = None
        """Why the files as they are now cannot be used."""

    def refresh(self) -> bool:
        """Load the value again if the files have changed; return whether there is news, good or bad."""
        before = self.problem
        try:
            content = self._read()
            if content == self._content:
                self.problem = None
                return before is not None
            self.current, self._content, self.problem = self._load(content), content, None
        except ValueError as error:
            self.problem = str(error)
            return self.problem != before
        return True
