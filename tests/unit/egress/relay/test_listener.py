"""Loopback listener: parallel connections, none after close, and no thread that outlives it."""

import socket
import threading
import time

import pytest

from egress.relay.listener import LoopbackListener


def _echo(connection: socket.socket) -> None:
    connection.sendall(connection.recv(100))


def _thread_ends(name: str) -> bool:
    for _ in range(6000):
        if not any(thread.name == name for thread in threading.enumerate()):
            return True
        time.sleep(0.01)
    return False


def test_connections_are_served_in_parallel_and_then_closed():
    listener = LoopbackListener("parallel", _echo)
    listener.open()
    connections = [socket.create_connection(("127.0.0.1", listener.port), 60) for _ in range(5)]
    for number, connection in reversed(list(enumerate(connections))):
        connection.sendall(b"%d" % number)
        assert connection.recv(100) == b"%d" % number
        assert connection.recv(100) == b""
        connection.close()
    listener.close()
    assert _thread_ends("parallel")


def _echo_twice(connection: socket.socket) -> None:
    _echo(connection)
    _echo(connection)


def test_close_refuses_new_connections_and_serves_open_ones():
    listener = LoopbackListener("closing", _echo_twice)
    listener.open()
    with socket.create_connection(("127.0.0.1", listener.port), 60) as connection:
        # Only a response proves that it was accepted: a connection in the backlog ends with the listener.
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        listener.close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", listener.port), 60)
        connection.sendall(b"b")
        assert connection.recv(1) == b"b"
    assert _thread_ends("closing")


def test_close_without_open():
    listener = LoopbackListener("never opened", _echo)
    listener.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", listener.port), 60)
