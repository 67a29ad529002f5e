"""A door on loopback: connections at once, none after its end, and no thread that waits for ever."""

import socket
import threading
import time

import pytest

from egress.relay.listener import Door


def _echo(connection: socket.socket) -> None:
    connection.sendall(connection.recv(100))


def _ends(name: str) -> bool:
    for _ in range(6000):
        if not any(thread.name == name for thread in threading.enumerate()):
            return True
        time.sleep(0.01)
    return False


def test_connections_are_served_at_the_same_time_and_closed_then():
    door = Door("door of many", _echo)
    door.open()
    made = [socket.create_connection(("127.0.0.1", door.port), 60) for _ in range(5)]
    for number, connection in reversed(list(enumerate(made))):
        connection.sendall(b"%d" % number)
        assert connection.recv(100) == b"%d" % number
        assert connection.recv(100) == b""
        connection.close()
    door.close()
    assert _ends("door of many")


def _echo_twice(connection: socket.socket) -> None:
    _echo(connection)
    _echo(connection)


def test_after_its_end_nobody_comes_in_and_who_is_in_is_served():
    door = Door("door that ends", _echo_twice)
    door.open()
    with socket.create_connection(("127.0.0.1", door.port), 60) as inside:
        # Only an answer says that it is in: a connection that nobody took yet ends with the door.
        inside.sendall(b"a")
        assert inside.recv(1) == b"a"
        door.close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", door.port), 60)
        inside.sendall(b"b")
        assert inside.recv(1) == b"b"
    assert _ends("door that ends")


def test_a_door_that_was_never_opened_can_be_closed():
    door = Door("door", _echo)
    door.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", door.port), 60)
