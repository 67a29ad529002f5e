"""The build pods' client of the API server, by TLS with pinned authorities."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.api_client import InternalApiClient
from tests.testbed.certificates import TestAuthority, store


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every POST with an empty object."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def authority() -> TestAuthority:
    return TestAuthority()


@pytest.fixture
def url(authority: TestAuthority, tmp_path: Path) -> Iterator[str]:
    store(tmp_path, authority.issue("localhost"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_address[1]}"
        server.shutdown()


def test_certificate_of_the_pinned_authority_is_accepted(url: str, authority: TestAuthority) -> None:
    assert InternalApiClient(url, "token", 30.0, authority.text).post("/x", {}) == (200, b"{}")


@pytest.mark.parametrize("pinned", [TestAuthority().text, ""], ids=["another", "those of the system"])
def test_certificate_of_another_authority_is_refused(url: str, pinned: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        InternalApiClient(url, "token", 30.0, pinned).post("/x", {})
