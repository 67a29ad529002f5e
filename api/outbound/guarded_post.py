"""Sends a body to a server, at checked addresses only. Called by `api.notifications` and `api.telemetry`.

Follows no redirect, and reads no more of a response than asked for.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

import aiohttp
from yarl import URL

from api.build_context.url import ContextUrl, ContextUrlRefused, parse_url
from egress.addresses import AddressRefused, AddressRules, Resolver, resolve_allowed, system_resolver
from egress.pinned_session import pinned_session

TIMEOUT_SECONDS = 10.0
RESOLVER_THREADS, MAX_THREADS_PER_PROJECT = 32, 2
"""Own threads: names that resolve slowly delay nothing else, and those of a project no other project."""


class PostFailed(Exception):
    """A request without a response; the text says why, and names the host only."""


@dataclass(frozen=True)
class PostResponse:
    """A response: its status, the header Retry-After, and the start of its body."""

    status: int
    host: str
    retry_after: str = ""
    body: bytes = b""

    @property
    def problem(self) -> str | None:
        """What is wrong with the response, as a text; None for a success."""
        if 200 <= self.status < 300:
            return None
        hint = "; redirects are not followed" if 300 <= self.status < 400 else ""
        return f"{self.host} responded with status {self.status}{hint}"


class GuardedPoster:
    """Sends bodies within the address rules of the installation."""

    def __init__(
        self, rules: AddressRules, resolve: Resolver = system_resolver, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._rules, self._resolve, self._timeout = rules, resolve, timeout
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, "outbound")
        self._places = WeakValueDictionary[str, asyncio.Semaphore]()

    def close(self) -> None:
        """Stop the threads once their names are resolved."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(
        self, address: str, content: bytes, headers: Mapping[str, str], body_bytes: int = 0, project: str = ""
    ) -> PostResponse:
        """POST a body and return the response with up to `body_bytes` of its own. Raises PostFailed.

        `project`: the uid of the project that names the server; empty if the installation does.
        """
        try:
            url = parse_url(address, None)
        except ContextUrlRefused as error:
            raise PostFailed(f"the URL {error}") from error
        problem = "was not resolved"
        try:
            async with asyncio.timeout(self._timeout):
                addresses = await self._addresses(url, project)
                problem = "did not respond"
                return await self._post(url, addresses, content, headers, body_bytes)
        except TimeoutError as error:
            raise PostFailed(f"{url.host} {problem} within {self._timeout:g} s") from error
        except AddressRefused as error:
            raise PostFailed(
                f"{url.host} is not in the networks that this installation connects to"
            ) from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise PostFailed(f"the certificate of {url.host} is not valid") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PostFailed(f"{url.host} could not be reached: {type(error).__name__}") from error

    async def _post(
        self,
        url: ContextUrl,
        addresses: list[str],
        content: bytes,
        headers: Mapping[str, str],
        body_bytes: int,
    ) -> PostResponse:
        request_url = URL(url.url, encoded=True)
        if (request_url.host, request_url.port, request_url.scheme) != (url.host, url.port, url.scheme):
            raise ValueError("ambiguous URL")
        async with (
            pinned_session(url.host, addresses) as session,
            session.post(request_url, data=content, headers=headers, allow_redirects=False) as response,
        ):
            start = await response.content.read(body_bytes) if body_bytes else b""
            return PostResponse(response.status, url.host, response.headers.get("Retry-After", ""), start)

    async def _addresses(self, url: ContextUrl, project: str) -> list[str]:
        """Resolve the host in a thread that the project keeps until it ends, even after a timeout."""
        loop = asyncio.get_running_loop()
        places = self._places.setdefault(project, asyncio.Semaphore(MAX_THREADS_PER_PROJECT))
        await places.acquire()

        def release(_: object) -> None:
            # The loop may be closed: the process ends then.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(places.release)

        resolving = self._threads.submit(resolve_allowed, url.host, url.port, self._rules, self._resolve)
        resolving.add_done_callback(release)
        return await asyncio.wrap_future(resolving)
