"""The logs of runs, of which the ended ones become one compressed blob each. Opened by `api.store.store`.

Sealing is repeatable: the blob, then the row that names it, then the deletion of the log. Readers look for
the row first, and once more where the log they began to read is gone meanwhile; so they see each event once,
whenever the switch comes.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import structlog

from api.store.blobs.blobs import Blobs
from api.store.errors import StoreUnavailable
from api.store.index.log_archives import ArchiveRow, Archives
from api.store.logs import gzip_blocks
from api.store.logs.event_logs import EventLogs, Held
from api.store.logs.gzip_blocks import Block, Packer
from api.store.logs.journal import READ_BYTES, Record, record
from api.store.logs.repair import Mending

logger = structlog.get_logger()

REMEMBERED = 500
"""Archives whose rows are remembered; a row of many blocks is read anew each time."""
MAX_BLOCKS = 200
BATCH = 1000


class Overtaken(Exception):
    """Another one has sealed the log meanwhile."""


class ArchivedEventLogs(EventLogs):
    """Logs as they are written, and archives of those that are sealed."""

    def __init__(self, logs: EventLogs, rows: Archives, blobs: Blobs, namespace: str) -> None:
        self._logs = logs
        self._rows = rows
        self._blobs = blobs
        self._namespace = namespace
        self._known: OrderedDict[str, ArchiveRow] = OrderedDict()

    def hold(self, run: str) -> AbstractAsyncContextManager[Held]:
        """As `EventLogs.hold`."""
        return self._logs.hold(run)

    async def seq(self, run: str) -> int:
        """As `EventLogs.seq`; of a run that has not ended."""
        return await self._logs.seq(run)

    async def read(self, run: str, after: int, limit: int, said: int | None) -> tuple[int, list[Record]]:
        """As `EventLogs.read`."""
        if said is None:
            return await self._logs.read(run, after, limit, None)
        count = min(limit, said - after)
        if count <= 0:
            return said, []
        archive = await self._find(run)
        if archive is None:
            try:
                found = await self._logs.read(run, after, limit, said)
            except StoreUnavailable:
                archive = await self._find(run)
                if archive is None:
                    raise
            else:
                archive = None if found[1] else await self._find(run)
                if archive is None:
                    return found
        return said, await self._unpacked(run, archive, after, count)

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """As `EventLogs.lines`, of a log that has no archive."""
        return await self._logs.lines(run, after, limit)

    async def clear(self, run: str) -> bool:
        """As `EventLogs.clear`."""
        return await self._logs.clear(run)

    async def forget(self, run: str) -> None:
        """As `EventLogs.forget`."""
        self._known.pop(run, None)
        await self._logs.forget(run)

    async def tokens(self, run: str) -> tuple[int, int]:
        """As `EventLogs.tokens`, of a log that has no archive: what is not accounted is not sealed."""
        return await self._logs.tokens(run)

    async def seal(self, run: str, said: int) -> int:
        """Makes the archive of an ended run's log of `said` events; gives its bytes. May be repeated.

        Passes over the log twice, a block in memory at a time: the store of blobs wants to know the size
        first. Raises StoreUnavailable.
        """
        if said <= 0:
            await self._rows.seal(run, None)
            return 0
        blocks, size, digest = [], 0, hashlib.sha256()
        try:
            async for block in self._blocks(run, said):
                blocks.append((block.count, len(block.data)))
                size += len(block.data)
                digest.update(block.data)
            sha256 = digest.hexdigest()
            archive = ArchiveRow(f"{folder(self._namespace, run)}/events/{sha256}.gz", size, blocks)
            await self._blobs.put(archive.blob, self._data(run, said), size, sha256)
        except Overtaken:
            return 0
        await self._rows.seal(run, archive)
        return size

    async def _data(self, run: str, said: int) -> AsyncIterator[bytes]:
        async for block in self._blocks(run, said):
            yield block.data

    async def _blocks(self, run: str, said: int) -> AsyncIterator[Block]:
        packer, after = Packer(), 0
        while after < said:
            lines = await self._logs.lines(run, after, min(BATCH, said - after))
            if not lines:
                lines = await self._missing(run, said - after)
            after += len(lines)
            for block in await asyncio.to_thread(packer.take, lines):
                yield block
        for block in await asyncio.to_thread(packer.rest):
            yield block

    async def _missing(self, run: str, count: int) -> list[bytes]:
        """What stands for the end of a log that is not there. Raises Overtaken."""
        if await self._rows.find(run):
            raise Overtaken
        logger.error("an event log is shorter than it was", run=run, lost=count)
        return Mending(run).gap(count)

    async def _find(self, run: str) -> ArchiveRow | None:
        known = self._known.get(run)
        if known:
            self._known.move_to_end(run)
            return known
        found = await self._rows.find(run)
        if found and len(found.blocks) <= MAX_BLOCKS:
            self._known[run] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    async def _unpacked(self, run: str, archive: ArchiveRow, after: int, count: int) -> list[Record]:
        found: list[Record] = []
        room = READ_BYTES
        for span in gzip_blocks.spans(archive.blocks, after):
            if len(found) >= count or room <= 0:
                break
            data = b"".join([part async for part in self._blobs.read(archive.blob, span.start, span.end)])
            skip = max(0, after - span.before)
            try:
                lines = (await asyncio.to_thread(gzip_blocks.unpack, data))[skip : skip + count - len(found)]
            except ValueError as error:
                raise StoreUnavailable(f"{archive.blob} cannot be read: {error}") from error
            for line in lines:
                room -= len(line)
                found.append(record(line))
        return found


def folder(namespace: str, run: str) -> str:
    """Where all blobs of a run are."""
    return f"{namespace}/runs/{run}"
