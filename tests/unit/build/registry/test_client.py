"""Failures of a registry and of its token service: which are tried again, and which are final."""

import base64
import http.server
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from build.errors import BuildRefused, RegistryError
from build.image.manifest import digest_of
from build.registry import repository
from build.registry.credential import RegistryCredential
from build.registry.repository import ImageRepository

TOKENS, TAGS, UPLOAD = "/token", "/v2/crews/demo/tags/list", "/v2/crews/demo/blobs/uploads/u1"


class _Registry(http.server.BaseHTTPRequestHandler):
    """A registry with a token service; `failures` has the statuses that a path answers first."""

    server: "_Server"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        if statuses := self.server.failures.get(path):
            self._answer(statuses.pop(0), {})
        elif path == TOKENS:
            self._answer(200, {"token": "t"})
        elif self.headers.get("Authorization") == "Bearer t":
            self._answer(200, {"tags": ["one"]})
        else:
            realm = f"http://127.0.0.1:{self.server.server_port}{TOKENS}"
            self._answer(401, {}, f'Bearer realm="{realm}",service="s",scope="repository:crews/demo:pull"')

    def do_HEAD(self) -> None:
        self._answer(404, {})

    def do_POST(self) -> None:
        self._answer(202, {}, location=UPLOAD)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        statuses = self.server.failures.get(path)
        self._answer(statuses.pop(0) if statuses else 201, {})

    def _answer(self, status: int, body: object, challenge: str = "", location: str = "") -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


class _Server(http.server.ThreadingHTTPServer):
    def __init__(self, failures: dict[str, list[int]]) -> None:
        super().__init__(("127.0.0.1", 0), _Registry)
        self.failures, self.requests = failures, list[str]()


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, list[int]]], _Server]]:
    with ExitStack() as opened:

        def serve(failures: dict[str, list[int]]) -> _Server:
            server = opened.enter_context(_Server(failures))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            opened.callback(server.shutdown)
            return server

        yield serve


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_pause", lambda attempt: None)


def images(server: _Server, user: str = "") -> ImageRepository:
    host = f"127.0.0.1:{server.server_port}"
    pair = base64.b64encode(f"{user}:secret".encode()).decode()
    auth = json.dumps({"auths": {host: {"auth": pair}}}) if user else ""
    return ImageRepository(f"{host}/crews/demo", True, RegistryCredential(auth))


@pytest.mark.parametrize("user", ["", "crew"])
@pytest.mark.parametrize("path", [TOKENS, TAGS])
def test_temporary_failure_is_tried_again(
    serve: Callable[[dict[str, list[int]]], _Server], path: str, user: str
) -> None:
    server = serve({path: [503, 429, 408]})
    assert images(server, user).tags(10) == ["one"]


@pytest.mark.parametrize("path", [TOKENS, TAGS])
def test_lasting_failure_is_no_refusal(serve: Callable[[dict[str, list[int]]], _Server], path: str) -> None:
    server = serve({path: [503] * 100})
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1 answered 503"):
        images(server).tags(10)
    assert server.requests.count(path) == 5


def test_refused_token_is_final(serve: Callable[[dict[str, list[int]]], _Server]) -> None:
    server = serve({TOKENS: [403] * 100})
    with pytest.raises(BuildRefused):
        images(server, "crew").tags(10)
    assert server.requests.count(TOKENS) == 1


@pytest.mark.parametrize("status", [404, 503])
def test_lost_upload_starts_again(serve: Callable[[dict[str, list[int]]], _Server], status: int) -> None:
    """The registry restarted, or another replica of it does not know the upload."""
    server = serve({UPLOAD: [status]})
    assert images(server).push_blob(io.BytesIO(b"layer"), 5, digest_of(b"layer"))
    assert server.requests == [UPLOAD, UPLOAD]


def test_refused_upload_is_final(serve: Callable[[dict[str, list[int]]], _Server]) -> None:
    server = serve({UPLOAD: [413]})
    with pytest.raises(BuildRefused):
        images(server).push_blob(io.BytesIO(b"layer"), 5, digest_of(b"layer"))
