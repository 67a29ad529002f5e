"""etcd as it is behind the apiserver: all that it holds, and all that is written meanwhile.

Speaks the JSON form of etcd's own protocol, with the certificate that the apiserver has.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

ADDRESS = "https://127.0.0.1:2379"
FIRST, LAST = "/registry/", "/registry0"
SECRETS = "/registry/secrets/"
_PAGE = 500
_LINE = 64 << 20


def _b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


@dataclass
class EtcdReader:
    """A connection; `written` has key and value of every write outside Secrets since `follow`."""

    session: aiohttp.ClientSession
    written: list[tuple[str, bytes]] = field(default_factory=list)
    revision: int = 0
    _task: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, state: Path) -> "EtcdReader":
        """Open with the certificates of a dev cluster."""
        context = ssl.create_default_context(cafile=str(state / "pki/etcd/ca.crt"))
        context.load_cert_chain(
            state / "pki/apiserver-etcd-client.crt", state / "pki/apiserver-etcd-client.key"
        )
        connector = aiohttp.TCPConnector(ssl=context)
        return cls(
            aiohttp.ClientSession(ADDRESS, connector=connector, timeout=aiohttp.ClientTimeout(total=600))
        )

    async def close(self) -> None:
        """End following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.session.close()

    async def _range(self, first: str | bytes, **more: Any) -> dict[str, Any]:
        body = {"key": _b64(first), "range_end": _b64(LAST), **more}
        async with self.session.post("/v3/kv/range", json=body) as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    async def now(self) -> int:
        """The present revision of the store."""
        return int((await self._range(FIRST, limit=1, keys_only=True))["header"]["revision"])

    async def follow(self) -> None:
        """Start to record writes, also of short-lived objects."""
        self.revision = await self.now()
        self._task = asyncio.create_task(self._watch(self.revision + 1))

    async def _watch(self, revision: int) -> None:
        request = {"key": _b64(FIRST), "range_end": _b64(LAST), "start_revision": revision}
        async with self.session.post(
            "/v3/watch", json={"create_request": request}, read_bufsize=_LINE
        ) as answer:
            async for line in answer.content:
                answered = json.loads(line)["result"]
                for event in answered.get("events", ()):
                    key, value = _pair(event["kv"])
                    if not key.startswith(SECRETS):
                        self.written.append((key, value))
                self.revision = max(self.revision, int(answered["header"]["revision"]))

    async def caught_up(self, seconds: float = 180) -> None:
        """Wait until all that was written before the call has been kept."""
        async with asyncio.timeout(seconds):
            wanted = await self.now()
            while self.revision < wanted:
                assert self._task is not None and not self._task.done(), "following etcd has ended"
                await asyncio.sleep(0.05)

    async def all(self) -> AsyncIterator[tuple[str, bytes]]:
        """Key and value of all that is there outside Secrets."""
        first: bytes = FIRST.encode()
        while True:
            page = await self._range(first, limit=_PAGE)
            for entry in page.get("kvs", ()):
                key, value = _pair(entry)
                if not key.startswith(SECRETS):
                    yield key, value
            if not page.get("more"):
                return
            first = base64.b64decode(page["kvs"][-1]["key"]) + b"\0"


def _pair(entry: dict[str, str]) -> tuple[str, bytes]:
    return base64.b64decode(entry["key"]).decode(), base64.b64decode(entry.get("value", ""))
