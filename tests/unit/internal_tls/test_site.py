"""The TLS listener: it serves beside the plain one, reloads its certificate, and bounds handshakes."""

import asyncio
import contextlib
import time
from pathlib import Path

import aiohttp
import pytest

from internal_tls import site
from tests.testbed.certificates import TestAuthority, store
from tests.unit.internal_tls.conftest import HOST, TlsTestbed

HANDSHAKES = "crewyard_tls_handshakes_total"
REJECTED = "crewyard_tls_certificate_rejected"
EXPIRY = "crewyard_tls_certificate_expiry_timestamp_seconds"


def descriptors() -> int:
    """Return the number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(holds) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def test_both_ports_serve(testbed: TlsTestbed) -> None:
    assert await testbed.get("/internal/v1/x") == (200, "https /internal/v1/x")
    async with aiohttp.ClientSession() as session, session.get(f"{testbed.plain.name}/x") as response:
        assert await response.text() == "http /x"
    assert testbed.sample(HANDSHAKES, result="done") == 1
    assert abs((testbed.sample(EXPIRY) or 0) - time.time() - 86400) < 600


async def test_client_of_another_authority_refuses(testbed: TlsTestbed) -> None:
    with pytest.raises(aiohttp.ClientConnectorCertificateError, match="CERTIFICATE_VERIFY_FAILED"):
        await testbed.get(authorities=TestAuthority().text)
    await until(lambda: testbed.sample(HANDSHAKES, result="failed") == 1)


async def test_new_certificate_is_served_without_a_restart(testbed: TlsTestbed, monkeypatch) -> None:
    later = TestAuthority()
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await testbed.get(authorities=later.text)
    store(testbed.directory, later.issue(HOST))
    assert testbed.files.refresh()
    assert await testbed.get(authorities=later.text) == (200, "https /")


async def test_files_are_read_again_regularly(testbed: TlsTestbed, monkeypatch) -> None:
    monkeypatch.setattr(site, "REFRESH_SECONDS", 0.01)
    for task in testbed.tls._loops[1:]:
        task.cancel()
    testbed.tls._loops[1] = asyncio.create_task(testbed.tls._refresh())
    (testbed.directory / "tls.key").write_text("damaged")
    await until(lambda: testbed.sample(REJECTED) == 1)
    # The one before is still served.
    assert await testbed.get() == (200, "https /")
    store(testbed.directory, testbed.authority.issue(HOST))
    await until(lambda: testbed.sample(REJECTED) == 0)


async def test_silent_clients_do_not_block_others(testbed: TlsTestbed, monkeypatch) -> None:
    """A crew opens connections to the TLS port and sends nothing."""
    monkeypatch.setattr(site, "MAX_HANDSHAKES", 20)
    monkeypatch.setattr(site, "HANDSHAKE_TIMEOUT_SECONDS", 600.0)
    before = descriptors()
    silent = [await asyncio.open_connection("127.0.0.1", testbed.port) for _ in range(100)]
    for _ in range(3):
        assert await testbed.get() == (200, "https /")
    # The oldest are closed, and no more than the limit is open.
    async with asyncio.timeout(120):
        assert await silent[0][0].read() == b""
    await until(lambda: len(testbed.tls._handshakes) <= 20)
    assert descriptors() <= before + len(silent) + 20 + 5
    for _, writer in silent:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    await until(lambda: not testbed.tls._handshakes and descriptors() <= before + 1)


async def test_handshake_ends_at_its_timeout(testbed: TlsTestbed, monkeypatch) -> None:
    monkeypatch.setattr(site, "HANDSHAKE_TIMEOUT_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", testbed.port)
    assert await reader.read() == b""
    writer.close()


async def test_connections_of_both_ports_count_together(testbed: TlsTestbed) -> None:
    testbed.plain.connections._limit = 5
    idle = [await asyncio.open_connection("127.0.0.1", testbed.plain._port) for _ in range(5)]
    assert await testbed.get() == (200, "https /")
    assert await idle[0][0].read() == b""
    for _, writer in idle:
        writer.close()
