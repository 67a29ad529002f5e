"""The runner by TLS: it accepts certificates of its authorities only, and no crew starts without one."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from api.metrics import ApiMetrics
from http_server.connections import ClientConnections
from internal_tls.certificate import CertificateFiles
from internal_tls.site import TlsSite
from tests.testbed.certificates import TestAuthority, certificate, store
from tests.unit.runner.api_server import FakeRunAPI
from tests.unit.runner.conftest import RunnerPod, wait_until
from tests.unit.runner.test_questions import WITHDRAWS

HOST = "localhost"


@dataclass
class TlsRunAPI:
    """The fake API behind the API server's own TLS port."""

    authority: TestAuthority
    directory: Path
    files: CertificateFiles
    site: TlsSite
    connections: ClientConnections

    def variables(self, host: str = HOST, authorities: str = "") -> dict[str, str]:
        """Return the variables of a run pod."""
        url = f"https://{host}:{self.site.name.rsplit(':', 1)[1]}"
        # A runner that used the plain one would find nothing there.
        plain = {"INTERNAL_URL": "http://127.0.0.1:9"}
        return {**plain, "INTERNAL_TLS_URL": url, "INTERNAL_CA": authorities or self.authority.text}


@pytest.fixture
async def tls(api: FakeRunAPI, tmp_path: Path) -> AsyncIterator[TlsRunAPI]:
    authority, directory = TestAuthority(), tmp_path / "tls"
    store(directory, authority.issue(HOST))
    runner = api._runner
    assert isinstance(runner, web.AppRunner) and runner.server is not None
    connections, files = ClientConnections(runner.server, 1000), CertificateFiles(directory)
    site = TlsSite(runner, "127.0.0.1", 0, connections.make_connection, files, ApiMetrics().tls)
    await site.start()
    yield TlsRunAPI(authority, directory, files, site, connections)
    await site.stop()
    connections.close()


CREW = """
    def kickoff(inputs):
        print("hello")
        with open("artifacts/a.txt", "w") as file:
            file.write("abc" * 1_000_000)
        return {"done": True}
"""


async def test_whole_run_by_tls(pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI) -> None:
    pod.crew(CREW)
    ended = await pod.run(**tls.variables())
    assert (ended.code, ended.stderr.count("Traceback")) == (0, 0)
    assert api.result is not None and api.result["outcome"] == "succeeded"
    assert "hello" in api.logs()
    assert api.artifacts["a.txt"][0].size == 3_000_000


async def test_a_withdrawn_question_is_closed_by_tls(pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI) -> None:
    api.ask_seconds = 86400
    pod.crew(WITHDRAWS)
    await pod.start(**tls.variables())
    await wait_until(lambda: api.polls)
    (pod.app / "withdraw").touch()
    await wait_until(lambda: api.closed)
    assert (api.closed, api.idle_polls) == (["q1"], 0)
    (pod.app / "end").touch()
    ended = await pod.wait()
    assert (ended.code, ended.stderr.count("Traceback")) == (0, 0)


async def test_several_authorities_are_accepted_while_one_is_replaced(
    pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI
) -> None:
    pod.crew(CREW)
    both = TestAuthority().text + tls.authority.text
    assert (await pod.run(**tls.variables(authorities=both))).code == 0


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ("another authority", "unable to get local issuer certificate"),
        ("self-signed", "self-signed certificate"),
        ("expired", "certificate has expired"),
        ("another name", "Hostname mismatch"),
        ("an authority of the system", "unable to get local issuer certificate"),
    ],
)
async def test_no_crew_runs_behind_a_certificate_that_is_not_accepted(
    case: str, problem: str, pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI, tmp_path: Path
) -> None:
    other = TestAuthority()
    served = {
        "another authority": lambda: other.issue(HOST),
        "self-signed": lambda: certificate(HOST),
        "expired": lambda: tls.authority.issue(HOST, expired=True),
        "another name": lambda: tls.authority.issue("other.example.com"),
        "an authority of the system": lambda: other.issue(HOST),
    }[case]()
    store(tls.directory, served)
    assert tls.files.refresh()
    if case == "an authority of the system":
        # What the image or the project's variables trust does not count.
        trusted = tmp_path / "system.crt"
        trusted.write_text(other.text)
        pod.environ["SSL_CERT_FILE"] = str(trusted)
    pod.crew("raise SystemExit('the crew ran')")
    # On a busy machine the short time may be over before the handshake is.
    for seconds in ("1", "30"):
        ended = await pod.run(**tls.variables(), START_TIMEOUT=seconds)
        assert ended.code == 78
        message = str(ended.termination["message"])
        if problem in message:
            break
    assert message.startswith(f"The run was not claimed: the API did not respond: the certificate of {HOST}:")
    assert problem in message
    assert (api.claims, api.events) == (0, [])
    assert "the crew ran" not in ended.stderr


async def test_unreadable_authorities_are_named(pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI) -> None:
    pod.crew(CREW)
    ended = await pod.run(**tls.variables(authorities="damaged"), START_TIMEOUT="1")
    assert (ended.code, api.claims) == (78, 0)
    assert "cadata does not contain a certificate" in str(ended.termination["message"])


STREAMING = """
    import os, time

    def kickoff(inputs):
        number = 0
        while not os.path.exists("stop"):
            number += 1
            print("line", number)
            time.sleep(0.005)
        with open("artifacts/last.txt", "w") as file:
            file.write(str(number))
        return {"lines": number}
"""


async def test_certificate_is_rotated_while_a_run_streams_events(
    pod: RunnerPod, api: FakeRunAPI, tls: TlsRunAPI
) -> None:
    pod.crew(STREAMING)
    await pod.start(**tls.variables())
    await wait_until(lambda: len(api.logs()) > 50)
    connections = api.connections["events"]
    before = len(connections)
    store(tls.directory, tls.authority.issue(HOST))
    assert tls.files.refresh()
    # Open connections go on; these are closed, so the runner meets the new certificate.
    for connection in list(tls.connections._server.connections):
        connection.force_close()
    await wait_until(lambda: len(connections) > before)
    # The new certificate is invalid for a while: nothing is lost meanwhile.
    store(tls.directory, TestAuthority().issue(HOST))
    assert tls.files.refresh()
    for connection in list(tls.connections._server.connections):
        connection.force_close()
    await asyncio.sleep(0.2)
    store(tls.directory, tls.authority.issue(HOST))
    assert tls.files.refresh()
    so_far = len(api.logs())
    await wait_until(lambda: len(api.logs()) > so_far + 50)
    (pod.app / "stop").touch()
    ended = await pod.wait()
    assert ended.code == 0, ended.stderr
    assert api.result is not None
    lines = api.result["output"]["lines"]
    assert [text for text in api.logs() if text.startswith("line ")] == [
        f"line {n + 1}" for n in range(lines)
    ]
    assert api.artifacts["last.txt"][0].body == str(lines).encode()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_server_speaks_no_version_before_1_2(tls: TlsRunAPI) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=tls.authority.text)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    port = int(tls.site.name.rsplit(":", 1)[1])
    with pytest.raises(OSError):
        await asyncio.open_connection(HOST, port, ssl=context)
