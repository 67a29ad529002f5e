"""Sends a message to a receiver, at checked addresses only. Called by `api.notifications.dispatcher`.

Follows no redirect and reads no body of a response.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from yarl import URL

from api.build_context.url import ContextUrl, ContextUrlRefused, parse_url
from api.notifications.attempt import Attempt
from egress.addresses import AddressRefused, AddressRules, Resolver, resolve_allowed, system_resolver
from egress.pinned_session import pinned_session

TIMEOUT_SECONDS = 10.0
RESOLVER_THREADS = 4
"""Own threads: names that resolve slowly delay nothing else."""


class WebhookSender:
    """Sends messages within the address rules of the installation."""

    def __init__(
        self, rules: AddressRules, resolve: Resolver = system_resolver, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._rules, self._resolve, self._timeout = rules, resolve, timeout
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, "notifications")

    def close(self) -> None:
        """Stop the threads once their names are resolved."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, address: str, content: bytes, headers: Mapping[str, str]) -> Attempt:
        """POST a message and return the result."""
        try:
            url = parse_url(address, None)
        except ContextUrlRefused as error:
            return Attempt(error=f"the URL {error}")
        try:
            async with asyncio.timeout(self._timeout):
                status = await self._post(url, content, headers)
        except TimeoutError:
            return Attempt(error=f"{url.host} did not respond within {self._timeout:g} s")
        except AddressRefused:
            return Attempt(error=f"{url.host} is not in the networks that this installation connects to")
        except aiohttp.ClientConnectorCertificateError:
            return Attempt(error=f"the certificate of {url.host} is not valid")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Attempt(error=f"{url.host} could not be reached: {type(error).__name__}")
        if 200 <= status < 300:
            return Attempt(status)
        hint = "; redirects are not followed" if 300 <= status < 400 else ""
        return Attempt(status, f"{url.host} responded with status {status}{hint}")

    async def _post(self, url: ContextUrl, content: bytes, headers: Mapping[str, str]) -> int:
        request_url = URL(url.url, encoded=True)
        if (request_url.host, request_url.port, request_url.scheme) != (url.host, url.port, url.scheme):
            raise ValueError("ambiguous URL")
        loop = asyncio.get_running_loop()
        addresses = await loop.run_in_executor(
            self._threads, resolve_allowed, url.host, url.port, self._rules, self._resolve
        )
        async with (
            pinned_session(url.host, addresses) as session,
            session.post(request_url, data=content, headers=headers, allow_redirects=False) as response,
        ):
            return response.status
