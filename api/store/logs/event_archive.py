"""Event logs of runs; those of ended runs become one compressed blob each. Opened by `api.store.store`.

Sealing is repeatable: it writes the blob, then the row that names it, then deletes the log. Readers look for
the row first, and once more if the log they started to read is gone; so they see each event once, whenever
the switch happens.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import structlog

from api.store.blobs.blobs import Blobs
from api.store.errors import StoreUnavailable
from api.store.index.log_archives import ArchiveRow, LogArchives
from api.store.logs import gzip_blocks
from api.store.logs.event_logs import EventLogs, EventLogWriter
from api.store.logs.gzip_blocks import BlockPacker, LogBlock
from api.store.logs.journal import MAX_READ_BYTES
from api.store.logs.repair import LogRepair
from api.store.logs.stored_event import StoredEvent
from api.store.token_counts import TokenCounts

logger = structlog.get_logger()

MAX_CACHED_ARCHIVES = 500
"""Archives with cached rows; a row with more than MAX_CACHED_BLOCKS blocks is read each time."""
MAX_CACHED_BLOCKS = 200
LINES_PER_READ = 1000


class AlreadySealed(Exception):
    """Another call has sealed the log meanwhile."""


class ArchivedEventLogs(EventLogs):
    """Logs that are still written, and archives of sealed ones."""

    def __init__(self, logs: EventLogs, rows: LogArchives, blobs: Blobs, namespace: str) -> None:
        self._logs = logs
        self._rows = rows
        self._blobs = blobs
        self._namespace = namespace
        self._cached_rows: OrderedDict[str, ArchiveRow] = OrderedDict()

    def open_writer(self, run: str) -> AbstractAsyncContextManager[EventLogWriter]:
        """Implement `EventLogs.open_writer`."""
        return self._logs.open_writer(run)

    async def seq(self, run: str) -> int:
        """Implement `EventLogs.seq`, for a run that has not ended."""
        return await self._logs.seq(run)

    async def read(
        self, run: str, after: int, limit: int, record_count: int | None
    ) -> tuple[int, list[StoredEvent]]:
        """Implement `EventLogs.read`."""
        if record_count is None:
            return await self._logs.read(run, after, limit, None)
        count = min(limit, record_count - after)
        if count <= 0:
            return record_count, []
        archive = await self._find(run)
        if archive is None:
            try:
                page = await self._logs.read(run, after, limit, record_count)
            except StoreUnavailable:
                archive = await self._find(run)
                if archive is None:
                    raise
            else:
                archive = None if page[1] else await self._find(run)
                if archive is None:
                    return page
        return record_count, await self._read_archive(run, archive, after, count)

    async def lines(self, run: str, after: int, limit: int) -> list[bytes]:
        """Implement `EventLogs.lines`, for a log without an archive."""
        return await self._logs.lines(run, after, limit)

    async def clear(self, run: str) -> bool:
        """Implement `EventLogs.clear`."""
        return await self._logs.clear(run)

    async def delete(self, run: str) -> None:
        """Implement `EventLogs.delete`."""
        self._cached_rows.pop(run, None)
        await self._logs.delete(run)

    async def tokens(self, run: str) -> TokenCounts:
        """Implement `EventLogs.tokens`."""
        if await self._find(run) is None:
            counts = await self._logs.tokens(run)
            # The log may have been sealed meanwhile.
            if await self._find(run) is None:
                return counts
        counts, after = TokenCounts(), 0
        while events := await self._archived(run, after):
            after += len(events)
            for event in events:
                counts.add(event.type, event.data)
        return counts

    async def _archived(self, run: str, after: int) -> list[StoredEvent]:
        archive = await self._find(run)
        return await self._read_archive(run, archive, after, LINES_PER_READ) if archive else []

    async def seal(self, run: str, record_count: int) -> int:
        """Archive an ended run's log of `record_count` events; return the archive's bytes. Idempotent.

        Reads the log twice, one block in memory at a time, since the blob store needs the size first. Raises
        StoreUnavailable.
        """
        if record_count <= 0:
            await self._rows.seal(run, None)
            return 0
        blocks, size, digest = [], 0, hashlib.sha256()
        try:
            async for block in self._blocks(run, record_count):
                blocks.append((block.count, len(block.data)))
                size += len(block.data)
                digest.update(block.data)
            sha256 = digest.hexdigest()
            archive = ArchiveRow(f"{folder(self._namespace, run)}/events/{sha256}.gz", size, blocks)
            await self._blobs.put(archive.blob, self._data(run, record_count), size, sha256)
        except AlreadySealed:
            return 0
        await self._rows.seal(run, archive)
        return size

    async def _data(self, run: str, record_count: int) -> AsyncIterator[bytes]:
        async for block in self._blocks(run, record_count):
            yield block.data

    async def _blocks(self, run: str, record_count: int) -> AsyncIterator[LogBlock]:
        packer, after = BlockPacker(), 0
        while after < record_count:
            lines = await self._logs.lines(run, after, min(LINES_PER_READ, record_count - after))
            if not lines:
                lines = await self._gap_lines(run, record_count - after)
            after += len(lines)
            for block in await asyncio.to_thread(packer.add, lines):
                yield block
        for block in await asyncio.to_thread(packer.flush):
            yield block

    async def _gap_lines(self, run: str, count: int) -> list[bytes]:
        """Return the lines that replace the missing end of a log. Raises AlreadySealed."""
        if await self._rows.find(run):
            raise AlreadySealed
        logger.error("an event log is shorter than it was", run=run, lost=count)
        return LogRepair(run).gap(count)

    async def _find(self, run: str) -> ArchiveRow | None:
        cached = self._cached_rows.get(run)
        if cached:
            self._cached_rows.move_to_end(run)
            return cached
        row = await self._rows.find(run)
        if row and len(row.blocks) <= MAX_CACHED_BLOCKS:
            self._cached_rows[run] = row
            if len(self._cached_rows) > MAX_CACHED_ARCHIVES:
                self._cached_rows.popitem(last=False)
        return row

    async def _read_archive(self, run: str, archive: ArchiveRow, after: int, count: int) -> list[StoredEvent]:
        events: list[StoredEvent] = []
        room = MAX_READ_BYTES
        for span in gzip_blocks.spans(archive.blocks, after):
            if len(events) >= count or room <= 0:
                break
            data = b"".join([part async for part in self._blobs.read(archive.blob, span.start, span.end)])
            skip = max(0, after - span.before)
            try:
                lines = (await asyncio.to_thread(gzip_blocks.unpack, data))[skip : skip + count - len(events)]
            except ValueError as error:
                raise StoreUnavailable(f"{archive.blob} cannot be read: {error}") from error
            for line in lines:
                room -= len(line)
                events.append(StoredEvent.split(line))
        return events


def folder(namespace: str, run: str) -> str:
    """Return the key prefix of all blobs of a run."""
    return f"{namespace}/runs/{run}"
