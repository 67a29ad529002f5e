"""Build logs: text per deployment, in the order it arrived.

Called by the pods' routes and the follower of Kaniko's log, which append, and by
the routes of logs, which read and follow.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from api.store.logs.journal import Damaged, Journal, Record
from api.store.logs.open_journals import Shelf, off
from api.store.logs.repair import BuildMending, mend_files
from api.store.sql.notifier import Signals

logger = structlog.get_logger()

MAX_RECORDS = 200_000
"""Chunks kept of one deployment; what follows is dropped, once with a line that says so."""
DROPPED = "… the build log is too long; the rest was dropped\n"


def key_of(deployment: str, uid: str) -> str:
    """The name of a Deployment's log: one that is made again under the same name begins another."""
    return f"{deployment}.{uid}"


@dataclass(frozen=True)
class Chunk:
    """A piece of a container's log: `seq` counts from 1 per pod and container."""

    seq: int
    text: str


@dataclass(frozen=True)
class LogPage:
    """Text after a position. `next` is where to read on; `mark` is for `BuildLogs.wait`."""

    text: str
    next: int
    mark: int


class _Book:
    """A journal of chunks that knows the last number of each container."""

    def __init__(self, directory: Path) -> None:
        try:
            self._open(directory)
        except Damaged as error:
            lost = mend_files(directory, BuildMending)
            logger.error(
                "a damaged build log was mended", deployment=directory.name, lost=lost, error=str(error)
            )
            self._open(directory)

    def _open(self, directory: Path) -> None:
        self.journal = Journal(directory)
        self.last: dict[tuple[str, str], int] = {}
        after = 0
        while records := self.journal.read(after, 1000):
            after += len(records)
            for record in records:
                self.last[record["p"], record["c"]] = record["s"]


class BuildLogs(ABC):
    """The build logs of one namespace."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    @abstractmethod
    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """Appends numbered chunks, each once; gives the greatest number stored for this container.

        A chunk beyond a gap is not stored: the answer tells the sender where to go on.
        """

    async def read(self, deployment: str, start: int = 0, limit: int = 1000) -> LogPage:
        """Up to `limit` chunks from `start` (0, or an earlier `next`). An unknown one is empty."""
        mark = self._signals.mark
        records = await self._read(deployment, start, limit)
        return LogPage("".join(record["t"] for record in records), start + len(records), mark)

    async def key(self, deployment: str, uid: str) -> str:
        """The log to read and to go on with; one that was begun before has the Deployment's name alone."""
        name = key_of(deployment, uid)
        for known in (name, deployment):
            if (await self.read(known, 0, 1)).next:
                return known
        return name

    async def wait(self, deployment: str, mark: int, timeout: float) -> None:
        """Returns at once if something was appended since `mark`, else when it is or after `timeout` s."""
        await self._signals.wait(deployment, mark, timeout)

    @abstractmethod
    async def remove(self, deployment: str) -> None:
        """Deletes a deployment's log."""

    @abstractmethod
    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]: ...


class FileBuildLogs(BuildLogs):
    """Build logs as segment files in one directory, which this process has for itself."""

    def __init__(self, directory: Path, signals: Signals) -> None:
        super().__init__(signals)
        self._shelf = Shelf(directory, _Book)

    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """As `BuildLogs.append`."""
        async with self._shelf.hold(deployment) as book:
            known = book.last.get((pod, container), 0)
            last, fresh = following(pod, container, chunks, known, MAX_RECORDS - book.journal.last)
            if fresh:
                await off(lambda: book.journal.append(fresh))
            book.last[pod, container] = last
        if fresh:
            self._signals.ring(deployment)
        return last

    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]:
        book = await self._shelf.open(deployment)
        try:
            return await off(lambda: book.journal.read(after, limit))
        except Damaged:
            # Opened anew, it is mended.
            await self._shelf.drop(deployment)
            again = await self._shelf.open(deployment)
            return await off(lambda: again.journal.read(after, limit))

    async def remove(self, deployment: str) -> None:
        """As `BuildLogs.remove`."""
        async with self._shelf.hold(deployment) as book:
            await off(book.journal.remove)
            await self._shelf.drop(deployment)


def following(
    pod: str, container: str, chunks: Sequence[Chunk], last: int, room: int
) -> tuple[int, list[Record]]:
    """The greatest number that follows `last` without a gap, and the records that are new and have room."""
    fresh: list[Record] = []
    for chunk in chunks:
        if chunk.seq == last + 1:
            last = chunk.seq
            fresh.append({"p": pod, "c": container, "s": chunk.seq, "t": chunk.text})
    if room < len(fresh):
        fresh = fresh[: max(room, 0)]
        if fresh:
            fresh[-1] = {**fresh[-1], "t": DROPPED}
    return last, fresh
