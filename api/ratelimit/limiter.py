"""Rate limits per minute, by API key or by client address.

Called by `api.routing.middleware` once per /v1 request. `api.ratelimit.counters` counts in fixed
windows; its statistics become the response headers.
"""

import ipaddress
import math
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItemPerMinute

from api import errors
from api.ratelimit.counters import LocalCounter, RequestCounter, SharedCounter

WINDOW_SECONDS = 60


@dataclass(frozen=True)
class Allowance:
    """The state of a window; `reset` in epoch seconds."""

    limit: int
    remaining: int
    reset: int
    exceeded: bool

    def headers(self) -> dict[str, str]:
        """Return the three rate limit headers."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def error(self, now: float, subject: str = "", what: str = "requests") -> errors.HttpApiError:
        """Return the 429 for a used-up window of `what`; `subject` begins the message."""
        wait = min(max(1, math.ceil(self.reset - now)), WINDOW_SECONDS)
        return errors.HttpApiError(
            429,
            f"{subject}more than {self.limit} {what} per minute; try again in {wait} s",
            {"limit": self.limit, "retry_after_seconds": wait},
            {"Retry-After": str(wait)},
        )


_rate_item = lru_cache(RateLimitItemPerMinute)


class RateLimiter:
    """Counts requests per client, in the Redis at `url` or in memory."""

    def __init__(self, url: str | None = None) -> None:
        self._counter: RequestCounter = LocalCounter() if url is None else SharedCounter(url)

    async def count(self, who: str, per_minute: int) -> Allowance:
        """Count a request of `who`, the id of a key or an address."""
        allowed, reset, remaining = await self._counter.hit(_rate_item(per_minute), who)
        return Allowance(per_minute, max(0, remaining), math.ceil(reset), not allowed)

    async def peek(self, who: str, per_minute: int) -> Allowance:
        """Return the state of the window of `who`; count nothing."""
        reset, remaining = await self._counter.remaining(_rate_item(per_minute), who)
        return Allowance(per_minute, max(0, remaining), math.ceil(reset), remaining <= 0)

    async def close(self) -> None:
        """Close the connections."""
        await self._counter.close()


@lru_cache(4096)
def client_network(remote: str | None) -> str:
    """Return the network of a client address: a /64 for IPv6, one client has all of it. Pure."""
    try:
        address = ipaddress.ip_address((remote or "").partition("%")[0])
    except ValueError:
        return remote or ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
