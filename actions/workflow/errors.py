"""What ends a step. Raised by all of this package, caught by `actions.workflow.step`."""

from collections.abc import Callable


class Failed(Exception):
    """The step fails with this message, which names the input or the reason and the next step.

    `file` (relative to the repository's root) and `line` say where to put the annotation, `title` what it
    is called.
    """

    def __init__(
        self, message: str, *, title: str = "Crewyard", file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.title, self.file, self.line = message, title, file, line


class Moved(Failed):
    """The answer is at another address (307): followed, without the key, by who expects it."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class Stopped(BaseException):
    """The workflow was canceled: SIGINT or SIGTERM arrived. No `except Exception` may swallow it.

    Who catches it calls `heard` first: then it does not come again.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__()
        self.heard = heard


class Refusal(Exception):
    """An answer of the API that is no success: its status, its code and its sentence."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in (408, 425, 429) or self.status >= 500
