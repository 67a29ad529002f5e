"""Stores an external build context as an upload. Called by `POST /v1/deployments`.

The deployment uses the stored copy: later changes at the URL have no effect.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import IO

from api import errors
from api.build_context.fetch import CHUNK_BYTES, ContextTooLarge, FetchLimits, fetch
from api.build_context.url import ContextUrlRefused, parse_hosts
from api.config import ApiConfig
from api.store.index.uploads import UploadRow
from api.store.store import Store
from egress.addresses import AddressRules, Resolver, system_resolver

FIELD = "build_context_url"
UPLOAD_HINT = "or upload the archive: POST /v1/uploads returns an upload URL"
MAX_PARALLEL_FETCHES = 4
SLOT_TIMEOUT_SECONDS = 30.0
BeforeStore = Callable[[int], Awaitable[None]]
"""Called with the bytes of an archive; may raise to refuse it."""


class ContextFetcher:
    """Fetches build contexts with limited concurrency."""

    def __init__(self, config: ApiConfig, store: Store, resolve: Resolver = system_resolver) -> None:
        self._hosts = parse_hosts(config.context_hosts)
        self._rules = AddressRules.parse(config.net_allow, config.net_deny)
        self._limits = FetchLimits(config.limits.context_bytes)
        self._config = config
        self._store, self._resolve = store, resolve
        self._slots = asyncio.Semaphore(MAX_PARALLEL_FETCHES)

    async def fetch_as_upload(
        self, address: str, project: str, now: datetime, before_store: BeforeStore
    ) -> UploadRow:
        """Fetch `address` and return its upload.

        Raises a 400 or 413 that names the field, a 503 if too many fetches run, StoreUnavailable,
        UploadQuotaExceeded, and what `before_store` raises.
        """
        if not self._hosts:
            raise errors.invalid(
                f"{FIELD} must be the build_context_url of an upload; POST /v1/uploads returns it, "
                "and the URL to PUT the archive to",
                FIELD,
            )
        # Before it is announced, which counts for the project's uploads until it expires.
        self._store.volume.check_room()
        try:
            async with asyncio.timeout(SLOT_TIMEOUT_SECONDS):
                await self._slots.acquire()
        except TimeoutError as error:
            raise errors.unavailable("too many archives are being fetched; try again shortly") from error
        try:
            with tempfile.TemporaryFile() as file:
                return await self._fetch_as_upload(file, address, project, now, before_store)
        finally:
            self._slots.release()

    async def _fetch_as_upload(
        self, file: IO[bytes], address: str, project: str, now: datetime, before_store: BeforeStore
    ) -> UploadRow:
        try:
            fetched = await fetch(address, file, self._hosts, self._rules, self._limits, self._resolve)
        except ContextUrlRefused as error:
            raise errors.invalid(f"{FIELD} {error}; use another URL, {UPLOAD_HINT}", FIELD) from error
        except ContextTooLarge as error:
            raise errors.HttpApiError(
                413,
                f"the archive at {FIELD} has more than {self._limits.size} bytes; leave out what the crew "
                "does not need",
                {"field": FIELD, "limit_bytes": self._limits.size},
            ) from error
        if not fetched.size:
            raise errors.invalid(f"{FIELD} points to an empty object (0 bytes); {UPLOAD_HINT}", FIELD)
        await before_store(fetched.size)
        uploads = self._store.uploads
        row = await uploads.create(
            project,
            fetched.size,
            fetched.sha256,
            now,
            now + timedelta(seconds=self._config.upload_ttl),
            self._config.kept_uploads,
            self._store.volume.uploads_bytes_limit(self._config.limits),
        )
        await asyncio.to_thread(file.seek, 0)
        return await self._store.receive(row.id, _chunks(file), now)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
        yield chunk
