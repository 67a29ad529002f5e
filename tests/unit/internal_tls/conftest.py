"""The TLS port over an application that echoes, with the certificate of an authority."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from api.metrics import ApiMetrics
from http_server.connections import BoundedSite
from internal_tls.certificate import CertificateFiles
from internal_tls.site import TlsSite
from tests.testbed.certificates import TestAuthority, store

HOST = "localhost"


@dataclass
class TlsTestbed:
    """A server with both ports; `directory` has the certificate of the TLS port."""

    authority: TestAuthority
    directory: Path
    plain: BoundedSite
    tls: TlsSite
    files: CertificateFiles
    metrics: ApiMetrics

    @property
    def port(self) -> int:
        """The TLS port."""
        return int(self.tls.name.rsplit(":", 1)[1])

    async def get(self, path: str = "/", authorities: str = "") -> tuple[int, str]:
        """Return status and body of a request by TLS on a new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=authorities or self.authority.text)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(f"https://{HOST}:{self.port}{path}") as response,
        ):
            return response.status, await response.text()

    def sample(self, name: str, **labels: str) -> float | None:
        """Return a metric."""
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
async def testbed(tmp_path: Path) -> AsyncIterator[TlsTestbed]:
    authority, directory = TestAuthority(), tmp_path / "tls"
    store(directory, authority.issue(HOST))

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.scheme} {request.path}")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    plain = BoundedSite(runner, "127.0.0.1", 0, 1000)
    await plain.start()
    files, metrics = CertificateFiles(directory), ApiMetrics()
    tls = TlsSite(runner, "127.0.0.1", 0, plain.connections.make_connection, files, metrics.tls)
    await tls.start()
    yield TlsTestbed(authority, directory, plain, tls, files, metrics)
    await runner.cleanup()
