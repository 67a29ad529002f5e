"""Results of builds on their way to the controller: by TLS with pinned authorities, or without."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from build.report import report_result
from build.settings import BuildSettings, read_settings
from controller import process as controller_process
from controller.config import ControllerConfig, parse
from controller.process import ControllerProcess
from crds import pod_tokens
from tests.testbed.apiserver import plain_client
from tests.testbed.certificates import TestAuthority, store
from tests.testbed.ports import free_port
from tests.unit.build.environment import environment
from tests.unit.controller.test_config import GOOD

UID, POD = "11111111-1111-1111-1111-111111111111", "pod-uid"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a build pod wait longer for the answer: this process may have no processor for a while."""
    monkeypatch.setattr("build.report._TIMEOUT_SECONDS", 60.0)


class ReportTestbed:
    """A controller with both ports, and what a build pod of it has in its environment."""

    def __init__(self, process: ControllerProcess, authority: TestAuthority) -> None:
        self.process, self.authority, self.config = process, authority, process.config

    def settings(self, url: str, authorities: str) -> BuildSettings:
        """Return the settings of a build pod."""
        expires = int(time.time()) + 600
        token = pod_tokens.mint(self.config.token_key, "build", "crews", "dep-a", UID, expires)
        variables = {
            **environment(),
            "CREWYARD_TOKEN": token,
            "CREWYARD_DEPLOYMENT": "dep-a",
            "CREWYARD_POD_UID": POD,
            "CREWYARD_CONTROLLER_URL": url,
            "CREWYARD_INTERNAL_CA": authorities,
        }
        return read_settings(variables)

    async def reported(self, url: str, authorities: str) -> bool:
        """Report a result as a build pod does; return whether the controller has it."""
        accepted = await asyncio.to_thread(
            report_result, self.settings(url, authorities), "push", {"outcome": "pushed"}
        )
        assert accepted == (self.process.shared.reported_results.get(UID, POD) is not None)
        return accepted

    @property
    def plain_url(self) -> str:
        """The URL of the plain port."""
        return f"http://127.0.0.1:{self.config.port}"


async def serving(directory: Path, plain: bool, by_tls: bool = True) -> AsyncIterator[ReportTestbed]:
    authority, ports = TestAuthority(), (free_port(), free_port())
    store(directory, authority.issue("localhost"))
    (directory / "ca.crt").write_text(authority.text)
    config: ControllerConfig = parse(
        {
            **GOOD,
            "CREWYARD_KOPF": "off",
            "CREWYARD_CONTROLLER_PORT": str(ports[0]),
            "CREWYARD_CONTROLLER_URL": f"http://127.0.0.1:{ports[0]}",
            "CREWYARD_CONTROLLER_TLS_PORT": str(ports[1]),
            "CREWYARD_CONTROLLER_TLS_URL": f"https://localhost:{ports[1]}" if by_tls else "",
            "CREWYARD_INTERNAL_TLS_URL": "https://api:8443",
            "CREWYARD_INTERNAL_TLS_DIR": str(directory),
            "CREWYARD_INTERNAL_CA_FILE": str(directory / "ca.crt"),
            "CREWYARD_INTERNAL_PLAIN": "on" if plain else "off",
        }
    )
    kube = plain_client("http://127.0.0.1:9")
    process = ControllerProcess(kube, config)
    process._active_since = time.monotonic()
    pages = await process.serve("127.0.0.1")
    yield ReportTestbed(process, authority)
    await pages.cleanup()
    await process.shared.close()
    await kube.close()


@pytest.fixture
async def testbed(tmp_path: Path) -> AsyncIterator[ReportTestbed]:
    async for found in serving(tmp_path, plain=False):
        yield found


@pytest.fixture
async def with_plain(tmp_path: Path) -> AsyncIterator[ReportTestbed]:
    async for found in serving(tmp_path, plain=True):
        yield found


async def test_build_reports_by_tls(testbed: ReportTestbed) -> None:
    config = testbed.config
    assert config.report_url == config.controller_tls_url
    assert await testbed.reported(config.report_url, config.api_address.authorities)
    handshakes = testbed.process.metrics.registry.get_sample_value
    assert handshakes("crewyard_tls_handshakes_total", {"result": "done"}) == 1


async def test_build_reports_nothing_behind_another_certificate(testbed: ReportTestbed) -> None:
    assert not await testbed.reported(testbed.config.report_url, TestAuthority().text)
    # The name in the certificate counts too.
    other_name = testbed.config.report_url.replace("localhost", "127.0.0.1")
    assert not await testbed.reported(other_name, testbed.authority.text)


async def test_plain_port_takes_results_until_that_is_off(with_plain: ReportTestbed, tmp_path: Path) -> None:
    """Build pods from before the change have the plain URL."""
    assert await with_plain.reported(with_plain.plain_url, "")


async def test_plain_port_refuses_results_once_it_is_off(testbed: ReportTestbed) -> None:
    assert not await testbed.reported(testbed.plain_url, "")


async def test_plain_port_refuses_results_also_without_a_tls_port(tmp_path: Path) -> None:
    """The controller then gets them from the kubelet, a second later."""
    async for testbed in serving(tmp_path, plain=False, by_tls=False):
        assert testbed.config.report_url == ""
        assert not await testbed.reported(testbed.plain_url, "")


async def test_tls_port_serves_results_only(testbed: ReportTestbed) -> None:
    """Build pods reach it, and neither metrics nor health are theirs."""
    found = {}
    async with aiohttp.ClientSession() as session:
        for path in ("/metrics", "/healthz"):
            for base in (testbed.plain_url, testbed.config.report_url):
                async with session.get(base + path, ssl=False) as response:
                    found[path, base[:5]] = response.status
    assert found[("/metrics", "http:")] == found[("/healthz", "http:")] == 200
    assert found[("/metrics", "https")] == found[("/healthz", "https")] == 404


async def test_new_authorities_need_no_restart(testbed: ReportTestbed, tmp_path: Path) -> None:
    file, later = testbed.config.internal_ca_file, TestAuthority()
    assert file is not None and testbed.config.api_address.authorities == testbed.authority.text
    (tmp_path / "ca.crt").write_text(testbed.authority.text + later.text)
    kept = asyncio.create_task(file.keep())
    async with asyncio.timeout(120):
        while later.text not in testbed.config.api_address.authorities:
            await asyncio.sleep(0.01)
    kept.cancel()
    # The settings of every namespace read the same file.
    assert later.text in testbed.config.of_namespace("team-a").api_address.authorities


async def test_build_reports_beside_connections_that_send_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A build runs untrusted code, which can reach the port."""
    monkeypatch.setattr(controller_process, "MAX_CONNECTIONS", 8)
    async for testbed in serving(tmp_path, plain=True):
        connections = [await asyncio.open_connection("127.0.0.1", testbed.config.port) for _ in range(8)]
        assert await testbed.reported(testbed.config.report_url, testbed.config.api_address.authorities)
        async with asyncio.timeout(60):
            assert await connections[0][0].read() == b""
        for _, writer in connections:
            writer.close()
