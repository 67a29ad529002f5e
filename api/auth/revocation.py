"""Ends the open streams of keys and tokens that hold no longer, whichever replica that was said to.

One look every two seconds at the distinct holders, not at their streams; at once where
a key is revoked, since that rings in every replica. Made by `api.app`; told by
`api.streaming.response` of who opens a stream.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

import structlog
from aiohttp import web

from api import errors
from api.auth.principal import Caller
from api.auth.providers import Tokens
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import Keys
from api.streaming.registry import Streams

LOOK_SECONDS = 2.0
GATHER_SECONDS = 0.05
_log = structlog.get_logger("api")


class Holders:
    """Whose streams are open."""

    def __init__(self, streams: Streams, keys: Keys, tokens: Tokens, now: Callable[[], datetime]) -> None:
        self._streams, self._keys, self._tokens, self._now = streams, keys, tokens, now
        self._callers: dict[str, Caller] = {}

    def opened(self, caller: Caller) -> None:
        """A stream of this caller has just been entered."""
        self._callers[caller.session] = caller

    def _present(self) -> list[Caller]:
        open_ = self._streams.holders()
        for session in self._callers.keys() - open_:
            del self._callers[session]
        return list(self._callers.values())

    async def look_at_keys(self) -> None:
        """Ends the streams of keys that are revoked. Raises StoreUnavailable."""
        held = [caller.session for caller in self._present() if caller.kind == "key"]
        for key_id in await self._keys.revoked(held):
            self._streams.revoke(key_id)

    async def look_at_tokens(self) -> None:
        """Ends the streams of tokens that prove nobody any more, or somebody with other permissions.

        Raises StoreUnavailable; whom nobody can tell about keeps their streams.
        """
        for caller in self._present():
            if caller.kind != "key" and not await self._still(caller):
                self._streams.end(caller.session)

    async def _still(self, caller: Caller) -> bool:
        try:
            found = await self._tokens.caller(caller.token, self._now(), _unguarded)
        except errors.ApiError:
            return True
        return found is not None and found.grants == caller.grants

    async def watching(self, _app: web.Application) -> AsyncIterator[None]:
        """A cleanup context: looks until the application stops."""
        tasks = [
            asyncio.create_task(self._watch_keys(), name="holders of keys"),
            asyncio.create_task(self._watch_tokens(), name="holders of tokens"),
        ]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)

    async def _watch_keys(self) -> None:
        while True:
            mark = self._keys.mark()
            await _tried(self.look_at_keys())
            await self._keys.wait(mark, LOOK_SECONDS)
            # Many revocations at once are one look; and a store that is closed makes nobody wait.
            await asyncio.sleep(GATHER_SECONDS)

    async def _watch_tokens(self) -> None:
        while True:
            # Apart from the keys: asking about many tokens takes its time.
            await _tried(self.look_at_tokens())
            await asyncio.sleep(LOOK_SECONDS)


async def _unguarded() -> None:
    """The guard of a question that no stranger asks."""


async def _tried(looking: Awaitable[None]) -> None:
    try:
        await looking
    except StoreUnavailable as error:
        _log.warning("holders_unknown", error=str(error))
        await asyncio.sleep(LOOK_SECONDS)
    except Exception:
        _log.exception("holders_failed")
        await asyncio.sleep(LOOK_SECONDS)
