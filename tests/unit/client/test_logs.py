"""Logs that arrive piece by piece."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crewyard import Client, ConnectionFailed, retry
from crewyard.cli.main import call
from crewyard.cli.output import Output

TARGETS = ("run_a", "dep_a")


class LogService:
    """Each of `answers` is one response: its parts, and whether the connection breaks after them.

    Before each part but the first it waits until `printed` is set.
    """

    def __init__(self):
        self.answers, self.printed = [], threading.Event()
        service = self

        class RequestHandler(BaseHTTPRequestHandler):
            def do_GET(self):
                parts, breaks = service.answers.pop(0)
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(sum(map(len, parts)) + breaks))
                self.end_headers()
                for number, part in enumerate(parts):
                    has_printed = not number or service.printed.wait(60)
                    self.wfile.write(part if has_printed else b"x" * len(part))

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), RequestHandler)


@pytest.fixture
def service(monkeypatch):
    fake = LogService()
    thread = threading.Thread(target=fake.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("CREWYARD_URL", f"http://127.0.0.1:{fake.server.server_port}")
    monkeypatch.setenv("CREWYARD_API_KEY", "crw_x")
    monkeypatch.setattr(retry, "pause", lambda *_: 0.0)
    yield fake
    fake.server.shutdown()
    fake.server.server_close()
    thread.join()


@pytest.mark.parametrize("target", TARGETS)
def test_a_log_is_printed_while_the_rest_arrives(service, monkeypatch, target):
    printed = []

    def text(_, piece):
        printed.append(piece)
        service.printed.set()

    monkeypatch.setattr(Output, "text", text)
    service.answers = [([b"one\ntw", b"o\nthree"], False)]
    assert call(["logs", target]) == 0
    assert printed == ["one\n", "two\n", "three"]


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_log_goes_on_after_a_lost_connection(service, cut):
    service.printed.set()
    whole = "one\nzwö\n".encode()
    service.answers = [([whole[:cut]], True), ([whole, b"three"], False)]
    with Client() as client:
        assert "".join(client.stream_run_log("run_a")) == "one\nzwö\nthree"


def test_a_log_that_always_breaks_is_given_up(service):
    service.answers = [([b"one\n"], True)] * retry.MAX_ATTEMPTS * 2
    with Client() as client:
        pieces = client.stream_build_log("dep_a")
        assert next(pieces) == "one\n"
        with pytest.raises(ConnectionFailed):
            next(pieces)
    assert len(service.answers) == retry.MAX_ATTEMPTS
