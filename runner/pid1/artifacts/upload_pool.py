"""Files that are sent at once: how many, and which next. Used by `upload`."""

from __future__ import annotations

import threading
from collections import deque

from runner.pid1.artifacts.files import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner.pid1.api.client import Facade

LANES = 4  # one waits for its disk while another is read; more would only press upon the facade
_LOOK = 1.0


class Lanes:
    """Threads with a connection each. They last for one batch of files, the connections for the run."""

    def __init__(self, connect: Callable[[], Facade]) -> None:
        self._connect = connect
        self._facades: list[Facade] = []
        self._changed = threading.Condition()
        self._waiting: deque[Found] = deque()
        self._sending: dict[str, int] = {}
        self._failed: BaseException | None = None

    def send(
        self,
        files: Sequence[Found],
        fits: Callable[[Found, int, int], bool],
        one: Callable[[Facade, Found], None],
    ) -> None:
        """Calls `one` for each file, a few at once, begun in this order; returns when all have ended.

        `fits(file, count, bytes)`: whether there is place beside so many files and bytes that are just being
        sent; False alone ends the file's turn. It is asked by one thread at a time. What `one` or `fits`
        raises ends the batch, and is raised here.
        """
        self._waiting, self._failed = deque(files), None
        while len(self._facades) < min(LANES, len(files)):
            self._facades.append(self._connect())
        others = [
            threading.Thread(target=self._lane, args=(facade, fits, one), name="upload lane", daemon=True)
            for facade in self._facades[1 : len(files)]
        ]
        for thread in others:
            thread.start()
        if files:
            self._lane(self._facades[0], fits, one)
        for thread in others:
            thread.join()  # each of its waits is bounded by the deadline of the calls
        if self._failed is not None:
            raise self._failed

    def _lane(
        self,
        facade: Facade,
        fits: Callable[[Found, int, int], bool],
        one: Callable[[Facade, Found], None],
    ) -> None:
        try:
            while (file := self._next(fits)) is not None:
                try:
                    one(facade, file)
                finally:
                    with self._changed:
                        del self._sending[file.name]
                        self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._failed = self._failed or error
                self._waiting.clear()
                self._changed.notify_all()

    def _next(self, fits: Callable[[Found, int, int], bool]) -> Found | None:
        with self._changed:
            while self._waiting:
                file = self._waiting[0]
                if fits(file, len(self._sending), sum(self._sending.values())):
                    self._sending[file.name] = file.size
                    return self._waiting.popleft()
                if self._sending:
                    # One of them may be refused, and leave its place.
                    self._changed.wait(_LOOK)
                elif self._waiting:
                    self._waiting.popleft()
        return None
