"""Build logs: text per deployment, in order of arrival.

Appended to by the pods' routes and the follower of Kaniko's log; read and followed by the routes of logs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from api.store.logs.journal import Journal, JournalDamaged, Record, encode_record
from api.store.logs.open_journals import OpenJournals, run_in_thread
from api.store.logs.repair import BuildLogRepair, repair_files
from api.store.sql.notifier import Notifier

logger = structlog.get_logger()

MAX_RECORDS = 200_000
"""Chunks stored per deployment; later ones are dropped, and one line in the log says so."""
DROPPED = "… the build log is too long; the rest was dropped\n"


def key_of(deployment: str, uid: str) -> str:
    """Return the name of a Deployment's log; a new Deployment of the same name gets a new log."""
    return f"{deployment}.{uid}"


@dataclass(frozen=True)
class Chunk:
    """A piece of a container's log; `seq` counts from 1 per pod and container."""

    seq: int
    text: str


@dataclass(frozen=True)
class LogPage:
    """Text after a position. `next` is the position to continue at; `mark` is for `BuildLogs.wait`."""

    text: str
    next: int
    mark: int


class BuildJournal:
    """A journal of chunks with the last chunk number of each container."""

    def __init__(self, directory: Path) -> None:
        try:
            self._open(directory)
        except JournalDamaged as error:
            lost = repair_files(directory, BuildLogRepair)
            logger.error(
                "a damaged build log was repaired", deployment=directory.name, lost=lost, error=str(error)
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

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    @abstractmethod
    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """Append numbered chunks, each once; return the greatest number stored for this container.

        A chunk after a gap is not stored: the returned number tells the sender where to continue.
        """

    async def read(self, deployment: str, start: int = 0, limit: int = 1000) -> LogPage:
        """Return up to `limit` chunks from `start` (0, or an earlier `next`). An unknown log is empty."""
        mark = self._notifier.mark
        records = await self._read(deployment, start, limit)
        return LogPage("".join(record["t"] for record in records), start + len(records), mark)

    async def key(self, deployment: str, uid: str) -> str:
        """Return the key of the log to read and continue; older logs have the Deployment's name alone."""
        name = key_of(deployment, uid)
        for key in (name, deployment):
            if (await self.read(key, 0, 1)).next:
                return key
        return name

    async def wait(self, deployment: str, mark: int, timeout: float) -> None:
        """Return as soon as a chunk has been appended since `mark`, or after `timeout` seconds."""
        await self._notifier.wait(deployment, mark, timeout)

    @abstractmethod
    async def remove(self, deployment: str) -> None:
        """Delete a deployment's log."""

    @abstractmethod
    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]: ...


class FileBuildLogs(BuildLogs):
    """Build logs as segment files in one directory, owned by this process."""

    def __init__(self, directory: Path, notifier: Notifier) -> None:
        super().__init__(notifier)
        self._journals = OpenJournals(directory, BuildJournal)

    async def append(self, deployment: str, pod: str, container: str, chunks: Sequence[Chunk]) -> int:
        """Implement `BuildLogs.append`."""
        async with self._journals.lock(deployment) as build:
            stored = build.last.get((pod, container), 0)
            last, fresh = new_chunks(pod, container, chunks, stored, MAX_RECORDS - build.journal.last)
            if fresh:
                lines = [encode_record(chunk) for chunk in fresh]
                await run_in_thread(lambda: build.journal.append(lines))
            build.last[pod, container] = last
        if fresh:
            self._notifier.notify(deployment)
        return last

    async def _read(self, deployment: str, after: int, limit: int) -> list[Record]:
        build = await self._journals.open(deployment)
        try:
            return await run_in_thread(lambda: build.journal.read(after, limit))
        except JournalDamaged:
            # Opening it again repairs it.
            await self._journals.evict(deployment)
            reopened = await self._journals.open(deployment)
            return await run_in_thread(lambda: reopened.journal.read(after, limit))

    async def remove(self, deployment: str) -> None:
        """Implement `BuildLogs.remove`."""
        async with self._journals.lock(deployment) as build:
            await run_in_thread(build.journal.remove)
            await self._journals.evict(deployment)


def new_chunks(
    pod: str, container: str, chunks: Sequence[Chunk], last: int, room: int
) -> tuple[int, list[Record]]:
    """Return the last number reached from `last` without a gap, and the new records that fit in `room`."""
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
