"""Failures of a private package index, by pip itself: which are tried again, and which are final."""

import http.server
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.errors import InfrastructureError
from build.logs import BuildLog
from build.settings import IndexCredentials
from build.wheels.download import download_wheels
from plan.errors import PlanError
from plan.packages.dependencies import DependencyDeclaration


class _Index(http.server.BaseHTTPRequestHandler):
    """A package index that answers everything with one status."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def index(status: int) -> Iterator[IndexCredentials]:
    handler = type("_IndexOfStatus", (_Index,), {"status": status})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield IndexCredentials(f"http://127.0.0.1:{server.server_port}/simple", "", "robot", "secret")
        server.shutdown()


def download(index: IndexCredentials, target: Path) -> None:
    wanted = DependencyDeclaration("x", ("house-tools",))
    download_wheels(wanted, "3.11", index, target, BuildLog(out=io.StringIO()), retries=0)


@pytest.mark.parametrize("status", [429, 503, 504])
def test_unavailable_index_is_tried_again(index: IndexCredentials, status: int, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=f"the package index answered {status}"):
        download(index, tmp_path)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (200, "no version of house-tools"),
        (404, "no version of house-tools"),
        (403, "rejects the credentials"),
    ],
)
def test_missing_package_is_final(index: IndexCredentials, status: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=message):
        download(index, tmp_path)
