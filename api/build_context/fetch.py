"""SSRF-safe fetch from an external server: connects to checked addresses only, at every redirect.

Called by `api.build_context.upload`. Resolves names itself, once per redirect, and pins the connection
to the result, so a later DNS change has no effect. Sends the bare request: no credentials, no
cookies, no proxy.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import IO

import aiohttp
from yarl import URL

from api.build_context.url import AllowedHosts, ContextUrl, ContextUrlRefused, parse_url, resolve_redirect
from api.store.errors import StoreUnavailable
from egress.addresses import AddressRefused, AddressRules, Resolver, resolve_allowed, system_resolver
from egress.pinned_session import pinned_session

MAX_REDIRECTS = 5
CHUNK_BYTES = 256 * 1024
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "crewyard"}


@dataclass(frozen=True)
class FetchLimits:
    """Limits of a fetch: bytes; seconds in total, to connect and without data."""

    size: int
    total: float = 120.0
    connect: float = 5.0
    idle: float = 20.0


@dataclass(frozen=True)
class FetchedContext:
    """Size and hash of the fetched bytes; `sha256` in hex."""

    size: int
    sha256: str


class ContextTooLarge(Exception):
    """More than `FetchLimits.size` bytes."""


async def fetch(
    address: str,
    file: IO[bytes],
    hosts: AllowedHosts,
    rules: AddressRules,
    limits: FetchLimits,
    resolve: Resolver = system_resolver,
) -> FetchedContext:
    """Fetch `address` into a file. Raises ContextUrlRefused with the reason, ContextTooLarge."""
    url = parse_url(address, hosts)
    try:
        async with asyncio.timeout(limits.total):
            for _ in range(MAX_REDIRECTS + 1):
                result = await _request(url, file, hosts, rules, limits, resolve)
                if isinstance(result, FetchedContext):
                    return result
                url = result
    except TimeoutError as error:
        raise ContextUrlRefused("took too long to fetch") from error
    raise ContextUrlRefused(f"redirects more than {MAX_REDIRECTS} times")


async def _request(
    url: ContextUrl,
    file: IO[bytes],
    hosts: AllowedHosts,
    rules: AddressRules,
    limits: FetchLimits,
    resolve: Resolver,
) -> FetchedContext | ContextUrl:
    request_url = URL(url.url, encoded=True)
    if (request_url.host, request_url.port, request_url.scheme) != (url.host, url.port, url.scheme):
        raise ContextUrlRefused("is ambiguous")
    try:
        addresses = await asyncio.to_thread(resolve_allowed, url.host, url.port, rules, resolve)
    except AddressRefused as error:
        raise ContextUrlRefused(f"resolves to {url.host}, which is not in the allowed networks") from error
    except OSError as error:
        raise ContextUrlRefused(f"names the host {url.host}, which does not resolve") from error
    timeout = aiohttp.ClientTimeout(sock_connect=limits.connect, sock_read=limits.idle)
    try:
        async with (
            pinned_session(url.host, addresses, timeout) as session,
            session.get(request_url, headers=HEADERS, allow_redirects=False) as response,
        ):
            if response.status in REDIRECT_STATUSES:
                return resolve_redirect(url, response.headers.get("Location", ""), hosts)
            if response.status != 200:
                raise ContextUrlRefused(f"got status {response.status} from {url.host}")
            return await _write_body(response, file, limits.size)
    except aiohttp.ClientConnectorCertificateError as error:
        raise ContextUrlRefused(f"points to {url.host}, whose certificate is not valid") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ContextUrlRefused(f"could not be fetched from {url.host}: {type(error).__name__}") from error


async def _write_body(response: aiohttp.ClientResponse, file: IO[bytes], max_bytes: int) -> FetchedContext:
    if response.content_length is not None and response.content_length > max_bytes:
        raise ContextTooLarge
    digest, size = hashlib.sha256(), 0
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        size += len(chunk)
        if size > max_bytes:
            raise ContextTooLarge
        digest.update(chunk)
        try:
            await asyncio.to_thread(file.write, chunk)
        except OSError as error:
            raise StoreUnavailable(f"the fetched archive cannot be stored: {error}") from error
    return FetchedContext(size, digest.hexdigest())
