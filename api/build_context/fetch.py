"""Fetching from another server: every address of every step is checked, and only such are connected to.

Called by `api.build_context.upload`. Names are resolved here, once a step, and the
connection is bound to what was found: a name that means another address in the
next moment changes nothing. Nothing of ours goes out but the request: no
credentials, no cookies, no proxy.
"""

import asyncio
import hashlib
import socket
from dataclasses import dataclass
from typing import IO

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from api.build_context.url import Hosts, Place, Refused, read, redirected
from api.store.errors import StoreUnavailable
from egress.addresses import AddressRefused, Resolver, Rules, checked, system_resolver

MAX_REDIRECTS = 5
CHUNK = 256 * 1024
REDIRECTS = (301, 302, 303, 307, 308)
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "crewyard"}


@dataclass(frozen=True)
class Limits:
    """What a fetch may take: bytes, and seconds in all, to connect and without a byte."""

    size: int
    total: float = 120.0
    connect: float = 5.0
    idle: float = 20.0


@dataclass(frozen=True)
class Fetched:
    """What came: `sha256` in hex."""

    size: int
    sha256: str


class TooMuch(Exception):
    """More than `Limits.size` bytes."""


class _Pinned(AbstractResolver):
    """Knows one name, and of it only what was checked."""

    def __init__(self, host: str, addresses: list[str]) -> None:
        self._host, self._addresses = host, addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
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
        """Nothing is held."""


async def fetch(
    address: str,
    into: IO[bytes],
    hosts: Hosts,
    rules: Rules,
    limits: Limits,
    resolve: Resolver = system_resolver,
) -> Fetched:
    """Writes what lies at `address` into a file. Raises Refused with what is wrong, TooMuch."""
    place = read(address, hosts)
    try:
        async with asyncio.timeout(limits.total):
            for _ in range(MAX_REDIRECTS + 1):
                found = await _step(place, into, hosts, rules, limits, resolve)
                if isinstance(found, Fetched):
                    return found
                place = found
    except TimeoutError as error:
        raise Refused("took too long to be fetched") from error
    raise Refused(f"is redirected more than {MAX_REDIRECTS} times")


async def _step(
    place: Place, into: IO[bytes], hosts: Hosts, rules: Rules, limits: Limits, resolve: Resolver
) -> Fetched | Place:
    url = URL(place.url, encoded=True)
    if (url.host, url.port, url.scheme) != (place.host, place.port, place.scheme):
        raise Refused("is not understood in one way only")
    try:
        addresses = await asyncio.to_thread(checked, place.host, place.port, rules, resolve)
    except AddressRefused as error:
        raise Refused(
            f"leads to {place.host}, at an address that this installation does not fetch from"
        ) from error
    except OSError as error:
        raise Refused(f"names the host {place.host}, which has no address") from error
    connector = aiohttp.TCPConnector(
        resolver=_Pinned(place.host, addresses), use_dns_cache=False, limit=1, force_close=True
    )
    timeout = aiohttp.ClientTimeout(sock_connect=limits.connect, sock_read=limits.idle)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=timeout,
            ) as session,
            session.get(url, headers=HEADERS, allow_redirects=False) as answer,
        ):
            if answer.status in REDIRECTS:
                return redirected(place, answer.headers.get("Location", ""), hosts)
            if answer.status != 200:
                raise Refused(f"was answered with {answer.status} by {place.host}")
            return await _body(answer, into, limits.size)
    except aiohttp.ClientConnectorCertificateError as error:
        raise Refused(f"leads to {place.host}, whose certificate is not valid") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Refused(f"could not be fetched from {place.host}: {type(error).__name__}") from error


async def _body(answer: aiohttp.ClientResponse, into: IO[bytes], most: int) -> Fetched:
    if answer.content_length is not None and answer.content_length > most:
        raise TooMuch
    digest, size = hashlib.sha256(), 0
    async for chunk in answer.content.iter_chunked(CHUNK):
        size += len(chunk)
        if size > most:
            raise TooMuch
        digest.update(chunk)
        try:
            await asyncio.to_thread(into.write, chunk)
        except OSError as error:
            raise StoreUnavailable(f"what is fetched cannot be kept: {error}") from error
    return Fetched(size, digest.hexdigest())
