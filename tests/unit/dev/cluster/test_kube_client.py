"""A watch that breaks is told as such, wherever it breaks."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dev.cluster.kube_client import HttpKubeApi, KubeApiError

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Broken(HttpKubeApi):
    """Gives the answer that `sent` is, after which the connection ends."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent

    @contextmanager
    def _request(
        self, method: str, path: str, body: object, content: str, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        near, far = socket.socketpair()
        far.sendall(self._sent)
        far.close()
        answer = http.client.HTTPResponse(near)
        answer.begin()
        yield answer
        near.close()


def test_a_stream_that_ends() -> None:
    assert list(Broken(HEAD + b"3\r\n{}\n\r\n0\r\n\r\n").lines("/", 1)) == [b"{}\n"]


@pytest.mark.parametrize(
    "rest", [b'4\r\n{"a"\r\n0\r\n\r\n', b'4\r\n{"a"\r\n', b'9\r\n{"a"', b"5\r\n{}\n12\r\nzz\r\n"]
)
def test_a_stream_that_breaks(rest: bytes) -> None:
    with pytest.raises(KubeApiError, match="lost"):
        list(Broken(HEAD + rest).lines("/", 1))
