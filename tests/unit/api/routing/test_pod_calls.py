"""Which port serves the calls of pods, as a rule and in the API server's application."""

import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from api.app import make_client_app
from api.config import parse
from api.store.store import Store
from internal_tls.certificate import load
from internal_tls.ports import refusal
from tests.testbed.apiserver import plain_client
from tests.testbed.certificates import TestAuthority, store
from tests.testbed.ports import free_port

CLAIM = "/internal/v1/runs/run-a/claim"


@pytest.mark.parametrize(
    ("path", "secure", "plain", "status"),
    [
        (CLAIM, True, True, None),
        (CLAIM, True, False, None),
        (CLAIM, False, True, None),
        (CLAIM, False, False, 403),
        ("/v1/runs", True, True, 404),
        ("/metrics", True, True, 404),
        ("/healthz", True, False, 404),
        ("/internalx", True, True, 404),
        ("/v1/runs", False, False, None),
        ("/metrics", False, False, None),
        ("/healthz", False, False, None),
    ],
)
def test_ports_and_paths(path: str, secure: bool, plain: bool, status: int | None) -> None:
    error = refusal(path, secure, plain)
    assert (error.status if error else None) == status


@pytest.mark.parametrize(("plain", "by_plain"), [("on", 200), ("off", 403)])
async def test_application_serves_pods_by_tls(tmp_path: Path, plain: str, by_plain: int) -> None:
    authority = TestAuthority()
    store(tmp_path / "tls", authority.issue("localhost"))
    config = parse(
        {
            "CREWYARD_TOKEN_KEY": "k" * 32,
            "CREWYARD_INTERNAL_TLS_DIR": str(tmp_path / "tls"),
            "CREWYARD_INTERNAL_PLAIN": plain,
        }
    )

    async def claim(_request: web.Request) -> web.Response:
        return web.json_response({})

    opened, kube = await Store.open(tmp_path / "data", "crews"), plain_client("http://127.0.0.1:9")
    application = make_client_app(config, opened, kube)
    application.router.add_post(CLAIM, claim)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    ports = free_port(), free_port()
    await web.TCPSite(runner, "127.0.0.1", ports[0]).start()
    await web.TCPSite(runner, "127.0.0.1", ports[1], ssl_context=load(tmp_path / "tls").context).start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.text)
    http, https = f"http://127.0.0.1:{ports[0]}", f"https://localhost:{ports[1]}"
    expected = [
        ("POST", http + CLAIM, by_plain),
        # Another spelling of the path; all requests have headers that proxies set.
        ("POST", http + CLAIM.replace("internal", "%69nternal"), by_plain),
        ("POST", https + CLAIM, 200),
        ("GET", f"{http}/healthz", 200),
        ("GET", f"{https}/healthz", 404),
        ("GET", f"{http}/v1/runs", 401),
        ("GET", f"{https}/v1/runs", 404),
    ]
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            for method, url, status in expected:
                headers = {"X-Forwarded-Proto": "https", "Forwarded": "proto=https"}
                address = URL(url, encoded=True)
                async with session.request(method, address, headers=headers) as response:
                    assert (url, response.status) == (url, status)
    finally:
        await runner.cleanup()
        await kube.close()
        await opened.close()
