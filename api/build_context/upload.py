"""A foreign build context becomes an upload, as if it had been sent here. Called by `POST /v1/deployments`.

The deployment is made from our copy: what lies at the address later does not matter.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import IO

from api import errors
from api.build_context.fetch import CHUNK, Limits, TooMuch, fetch
from api.build_context.url import Refused, parse_hosts
from api.config import Config
from api.store.index.uploads import UploadRow
from api.store.store import Store
from egress.addresses import Resolver, Rules, system_resolver

FIELD = "build_context_url"
INSTEAD = "or upload the archive: POST /v1/uploads gives an address"
AT_ONCE = 4
WAIT_SECONDS = 30.0


class Contexts:
    """Fetches for one installation, few at a time."""

    def __init__(self, config: Config, store: Store, resolve: Resolver = system_resolver) -> None:
        self._hosts = parse_hosts(config.context_hosts)
        self._rules = Rules.parse(config.net_allow, config.net_deny)
        self._limits = Limits(config.limits.context_bytes)
        self._config = config
        self._store, self._resolve = store, resolve
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def bring(self, address: str, project: str, now: datetime) -> UploadRow:
        """The upload that holds what lies at `address`.

        Raises a 400 or 413 that names the field, 503 where too many are being fetched, StoreUnavailable.
        """
        if not self._hosts:
            raise errors.invalid(
                f"{FIELD} must be the address of an upload here; POST /v1/uploads gives one, "
                "and the address to PUT the archive to",
                FIELD,
            )
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turns.acquire()
        except TimeoutError as error:
            raise errors.unavailable("too many archives are being fetched; try again shortly") from error
        try:
            with tempfile.TemporaryFile() as file:
                return await self._bring(file, address, project, now)
        finally:
            self._turns.release()

    async def _bring(self, file: IO[bytes], address: str, project: str, now: datetime) -> UploadRow:
        try:
            found = await fetch(address, file, self._hosts, self._rules, self._limits, self._resolve)
        except Refused as error:
            raise errors.invalid(f"{FIELD} {error}; give another address, {INSTEAD}", FIELD) from error
        except TooMuch as error:
            raise errors.ApiError(
                413,
                f"what lies at {FIELD} has more than {self._limits.size} bytes; leave out what the crew does "
                "not need",
                {"field": FIELD, "limit_bytes": self._limits.size},
            ) from error
        if not found.size:
            raise errors.invalid(f"{FIELD} is the address of nothing: 0 bytes; {INSTEAD}", FIELD)
        uploads = self._store.uploads
        row = await uploads.create(
            project,
            found.size,
            found.sha256,
            now,
            now + timedelta(seconds=self._config.upload_ttl),
            self._config.kept_uploads,
        )
        await asyncio.to_thread(file.seek, 0)
        return await self._store.receive(row.id, _chunks(file), now)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        yield chunk
