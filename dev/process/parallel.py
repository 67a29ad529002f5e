"""Functions that run side by side in threads, with the commands they wait for.

Used by `up` for its long builds.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

from dev.progress import StepProgress

_MAX_THREADS = 8
P = ParamSpec("P")
T = TypeVar("T")


class Start(Protocol):
    """Starts a function in a thread and returns its future."""

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start `function`."""


@contextmanager
def parallel(progress: StepProgress) -> Iterator[Start]:
    """Wait at the end of the block for all functions started in it.

    The first error, and Ctrl-C, stop the interruptible commands of all steps; the error is raised.
    """
    started: list[Future[Any]] = []

    def start(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = workers.submit(function, *args, **kwargs)
        started.append(future)
        return future

    with ThreadPoolExecutor(_MAX_THREADS) as workers:
        try:
            yield start
            for future in as_completed(started):
                future.result()
        except BaseException:
            progress.stop()
            raise
