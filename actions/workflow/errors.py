"""Exceptions that end a step. Raised by all of this package, caught by `actions.workflow.step`."""

from collections.abc import Callable


class StepFailed(Exception):
    """Fails the step; the message names the input or the reason, and the next step.

    `file` (relative to the repository root), `line` and `title` are those of the annotation.
    """

    def __init__(
        self, message: str, *, title: str = "Crewyard", file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.title, self.file, self.line = message, title, file, line


class Redirected(StepFailed):
    """The response is at another URL (307); a caller that expects this follows it without the key."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class StepCanceled(BaseException):
    """The workflow was canceled with SIGINT or SIGTERM. A BaseException, so `except Exception` lets it pass.

    A handler must call `acknowledge` first, otherwise it is raised again.
    """

    def __init__(self, acknowledge: Callable[[], None]) -> None:
        super().__init__()
        self.acknowledge = acknowledge


class ErrorResponse(Exception):
    """An error response of the API: status, code and message."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 425, 429) or self.status >= 500
