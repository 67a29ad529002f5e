"""Asks the kernel for what a container that builds has no need of."""

import ctypes
import os
import socket

from tries import Stopped, attempt

_libc = ctypes.CDLL(None, use_errno=True)


def _called(result):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _in_child(work):
    """Does it in a process of its own, which it would change."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.write(writes, b"ok")
        except OSError as error:
            os.write(writes, str(error).encode())
        finally:
            os._exit(0)
    os.close(writes)
    answer = os.read(reads, 400).decode()
    os.close(reads)
    os.waitpid(pid, 0)
    if answer != "ok":
        raise Stopped(answer)
    return answer


@attempt
def mount_something(places):
    os.makedirs("/tmp/mounted", exist_ok=True)

    def work():
        _called(_libc.mount(b"none", b"/tmp/mounted", b"tmpfs", 0, b""))

    return _in_child(work)


@attempt
def new_namespaces(places):
    return _in_child(lambda: _called(_libc.unshare(0x00020000)))


@attempt
def another_root(places):
    return _in_child(lambda: os.chroot("/tmp"))


@attempt
def another_user(places):
    return _in_child(lambda: os.setuid(1000))


@attempt
def make_a_device(places):
    path = f"/tmp/device-{os.getpid()}"
    os.mknod(path, 0o060600, os.makedev(7, 0))
    os.unlink(path)
    return path


@attempt
def listen_to_packets(places):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)):
        return "heard"
