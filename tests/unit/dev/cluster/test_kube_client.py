"""A lost connection of a watch is reported, at any position."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dev.cluster.kube_client import HttpKubeApi, KubeApiError

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class BrokenHttpKubeApi(HttpKubeApi):
    """Returns `sent` as the response, then closes the connection."""

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
    assert list(BrokenHttpKubeApi(HEAD + b"3\r\n{}\n\r\n0\r\n\r\n").lines("/", 1)) == [b"{}\n"]


@pytest.mark.parametrize(
    "rest", [b'4\r\n{"a"\r\n0\r\n\r\n', b'4\r\n{"a"\r\n', b'9\r\n{"a"', b"5\r\n{}\n12\r\nzz\r\n"]
)
def test_a_stream_that_breaks(rest: bytes) -> None:
    with pytest.raises(KubeApiError, match="lost"):
        list(BrokenHttpKubeApi(HEAD + rest).lines("/", 1))


def test_an_answer_that_breaks() -> None:
    kube = BrokenHttpKubeApi(HEAD + b'9\r\n{"a"')
    with pytest.raises(KubeApiError, match="lost"):
        kube.call("GET", "/")
    with pytest.raises(KubeApiError, match="lost"):
        kube.text("/")
