"""How many requests a key, or an address without one, may make a minute.

Called by `api.routing.middleware` once per /v1 request. The counting, in fixed windows, is that of
`api.ratelimit.counters`, whose statistics are the headers.
"""

import ipaddress
import math
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItemPerMinute

from api import errors
from api.ratelimit.counters import Counter, LocalCounter, SharedCounter

WINDOW_SECONDS = 60


@dataclass(frozen=True)
class Allowance:
    """What is left of a window: `reset` in epoch seconds."""

    limit: int
    remaining: int
    reset: int
    exceeded: bool

    def headers(self) -> dict[str, str]:
        """The three headers of every answer."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def refusal(self, now: float) -> errors.ApiError:
        """The 429 for a window that is used up."""
        wait = min(max(1, math.ceil(self.reset - now)), WINDOW_SECONDS)
        return errors.ApiError(
            429,
            f"more than {self.limit} requests a minute; try again in {wait} s",
            {"limit": self.limit, "retry_after_seconds": wait},
            {"Retry-After": str(wait)},
        )


_a_minute = lru_cache(RateLimitItemPerMinute)


class RateLimiter:
    """Counts requests by who makes them, in the Redis at `url` or in memory."""

    def __init__(self, url: str | None = None) -> None:
        self._counter: Counter = LocalCounter() if url is None else SharedCounter(url)

    async def count(self, who: str, per_minute: int) -> Allowance:
        """Counts one request of `who` (a key's id or an address) against its window."""
        allowed, reset, left = await self._counter.hit(_a_minute(per_minute), who)
        return Allowance(per_minute, max(0, left), math.ceil(reset), not allowed)

    async def look(self, who: str, per_minute: int) -> Allowance:
        """Whether `who` has used the window up already, counting nothing."""
        used_up, reset = await self._counter.used_up(_a_minute(per_minute), who)
        return Allowance(per_minute, 0, math.ceil(reset), used_up)

    async def close(self) -> None:
        """Closes its connections."""
        await self._counter.close()


@lru_cache(4096)
def place(remote: str | None) -> str:
    """The network that an address stands for: one caller has a whole /64 of IPv6. Pure."""
    try:
        address = ipaddress.ip_address((remote or "").partition("%")[0])
    except ValueError:
        return remote or ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
