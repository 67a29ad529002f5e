"""A resolver that knows one host, at addresses that were checked before.

Called by `api.build_context.fetch` and `api.notifications.sender`: a later change of the name has no effect.
"""

import socket

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
