"""Ends the open streams of revoked keys, invalid tokens and lost rights, on every replica.

Checks the distinct credentials, not their streams, every two seconds; immediately after a key
is revoked, since the store notifies every replica. Created by `api.app`;
`api.routing.stream_response` watches each caller that opens a stream or waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from aiohttp import web

from api import errors
from api.auth.principal import Caller
from api.auth.providers import TokenProviders
from api.auth.scopes import Scope
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import ApiKeys
from api.streaming.registry import StreamRegistry

CHECK_SECONDS = 2.0
COALESCE_SECONDS = 0.05
Right = tuple[Scope, str]
"""A scope in a project."""
_log = structlog.get_logger("api")


@dataclass(frozen=True, slots=True)
class _Watched:
    """A caller with open streams, and the rights that they need."""

    caller: Caller
    rights: set[Right] = field(default_factory=set)


class RevocationWatcher:
    """Watches the credentials of open streams, and the rights that these need."""

    def __init__(
        self, streams: StreamRegistry, keys: ApiKeys, tokens: TokenProviders, now: Callable[[], datetime]
    ) -> None:
        self._streams, self._keys, self._tokens, self._now = streams, keys, tokens, now
        self._watched: dict[str, _Watched] = {}

    def watch(self, caller: Caller, right: Right) -> None:
        """Watch the credential of a caller whose stream was just registered, and the right it needs."""
        self._watched.setdefault(caller.credential_id, _Watched(caller)).rights.add(right)

    def _open_credentials(self) -> list[_Watched]:
        open_credentials = self._streams.credentials()
        for credential_id in self._watched.keys() - open_credentials:
            del self._watched[credential_id]
        return list(self._watched.values())

    async def check_keys(self) -> None:
        """End the streams of revoked keys. Raises StoreUnavailable."""
        open_credentials = self._open_credentials()
        key_ids = [each.caller.credential_id for each in open_credentials if each.caller.kind == "key"]
        for key_id in await self._keys.revoked(key_ids):
            self._streams.revoke(key_id)

    async def check_tokens(self) -> None:
        """End the streams of invalid tokens, and those that need a right that their token has lost.

        Raises StoreUnavailable. A token whose provider is unavailable keeps its streams.
        """
        for watched in self._open_credentials():
            if watched.caller.kind != "key":
                await self._check_token(watched)

    async def _check_token(self, watched: _Watched) -> None:
        token, credential_id = watched.caller.token, watched.caller.credential_id
        try:
            current = await self._tokens.caller(token, self._now(), _unguarded)
        except errors.HttpApiError:
            return
        lost = {right for right in watched.rights if current is None or not current.may(*right)}
        if lost:
            self._streams.end_streams(credential_id, lost)
            watched.rights.difference_update(lost)

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
