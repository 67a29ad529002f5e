"""Ends the open streams of revoked keys and invalid tokens, on every replica.

Checks the distinct credentials, not their streams, every two seconds; immediately after a key
is revoked, since the store notifies every replica. Created by `api.app`;
`api.routing.stream_response` watches each caller that opens a stream or waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

import structlog
from aiohttp import web

from api import errors
from api.auth.principal import Caller
from api.auth.providers import TokenProviders
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import ApiKeys
from api.streaming.registry import StreamRegistry

CHECK_SECONDS = 2.0
COALESCE_SECONDS = 0.05
_log = structlog.get_logger("api")


class RevocationWatcher:
    """Watches the credentials of open streams."""

    def __init__(
        self, streams: StreamRegistry, keys: ApiKeys, tokens: TokenProviders, now: Callable[[], datetime]
    ) -> None:
        self._streams, self._keys, self._tokens, self._now = streams, keys, tokens, now
        self._callers: dict[str, Caller] = {}

    def watch(self, caller: Caller) -> None:
        """Watch the credential of a caller whose stream was just registered."""
        self._callers[caller.credential_id] = caller

    def _open_callers(self) -> list[Caller]:
        open_credentials = self._streams.credentials()
        for credential_id in self._callers.keys() - open_credentials:
            del self._callers[credential_id]
        return list(self._callers.values())

    async def check_keys(self) -> None:
        """End the streams of revoked keys. Raises StoreUnavailable."""
        key_ids = [caller.credential_id for caller in self._open_callers() if caller.kind == "key"]
        for key_id in await self._keys.revoked(key_ids):
            self._streams.revoke(key_id)

    async def check_tokens(self) -> None:
        """End the streams of tokens that became invalid or changed their permissions.

        Raises StoreUnavailable. A token whose provider is unavailable keeps its streams.
        """
        for caller in self._open_callers():
            if caller.kind != "key" and not await self._still_valid(caller):
                self._streams.end_streams(caller.credential_id)

    async def _still_valid(self, caller: Caller) -> bool:
        try:
            current = await self._tokens.caller(caller.token, self._now(), _unguarded)
        except errors.HttpApiError:
            return True
        return current is not None and current.grants == caller.grants

    async def run(self, _app: web.Application) -> AsyncIterator[None]:
        """Run the checks until the application stops (a cleanup context)."""
        tasks = [
            asyncio.create_task(self._watch_keys(), name="revoked keys"),
            asyncio.create_task(self._watch_tokens(), name="invalid tokens"),
        ]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)

    async def _watch_keys(self) -> None:
        while True:
            mark = self._keys.mark()
            await _run_check(self.check_keys())
            await self._keys.wait(mark, CHECK_SECONDS)
            # Coalesce many revocations into one check; a closed store returns from wait immediately.
            await asyncio.sleep(COALESCE_SECONDS)

    async def _watch_tokens(self) -> None:
        while True:
            # A task of its own: the review of many tokens takes time.
            await _run_check(self.check_tokens())
            await asyncio.sleep(CHECK_SECONDS)


async def _unguarded() -> None:
    """Allow the review: the token was accepted before."""


async def _run_check(check: Awaitable[None]) -> None:
    try:
        await check
    except StoreUnavailable as error:
        _log.warning("holders_unknown", error=str(error))
        await asyncio.sleep(CHECK_SECONDS)
    except Exception:
        _log.exception("holders_failed")
        await asyncio.sleep(CHECK_SECONDS)
