"""HTTP session that knows one host, at addresses that were checked before.

Called by `api.build_context.fetch` and `api.outbound.guarded_post`: a later change of the name has no effect.
"""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult


class PinnedResolver(AbstractResolver):
    """Resolves one host name, to its checked addresses only."""

    def __init__(self, host: str, addresses: list[str]) -> None:
        self._host, self._addresses = host, addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the checked addresses. Raises OSError for another host."""
        if host != self._host:
            raise OSError(f"{host} was not checked")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Do nothing."""


def pinned_session(
    host: str, addresses: list[str], timeout: aiohttp.ClientTimeout | None = None
) -> aiohttp.ClientSession:
    """Return a session for one connection: no cookies, no proxy, no credentials of the machine."""
    connector = aiohttp.TCPConnector(
        resolver=PinnedResolver(host, addresses), use_dns_cache=False, limit=1, force_close=True
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=timeout,
    )
