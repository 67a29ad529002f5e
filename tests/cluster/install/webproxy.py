"""A web proxy on the bridge that records requested hosts, for tests of installations behind a proxy."""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from dev.settings import BRIDGE_ADDRESS
from tests.cluster.install.relay import copy

_PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_COPIED_HEADERS = ("Content-Type", "ETag", "Last-Modified")


class RecordingProxy(ThreadingHTTPServer):
    """The proxy; `hosts` lists the requested hosts in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((BRIDGE_ADDRESS, 0), _ProxyHandler)
        self.hosts: list[str] = []


class _ProxyHandler(BaseHTTPRequestHandler):
    server: RecordingProxy

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        self.server.hosts.append(host)
        try:
            target = socket.create_connection((host, int(port)), 30)
        except OSError:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        back = threading.Thread(target=copy, args=(target, self.connection), daemon=True)
        back.start()
        copy(self.connection, target)
        back.join(600)
        self.close_connection = True

    def do_GET(self) -> None:
        self.server.hosts.append(urlsplit(self.path).hostname or "")
        headers = {name: self.headers.get(name, "") for name in ("Accept", "User-Agent")}
        try:
            answer = _PLAIN.open(urllib.request.Request(self.path, headers=headers), timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        except OSError:
            self.send_error(502)
            return
        with answer:
            body = answer.read()
        self.send_response(answer.status or 502)
        for name in _COPIED_HEADERS:
            if answer.headers.get(name):
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_proxy() -> Iterator[RecordingProxy]:
    """Run the proxy while the context is open."""
    server = RecordingProxy()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
