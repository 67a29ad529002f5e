"""Attempts to reach what is not the internet. The input tells where they lead: name → address and port."""

import socket

from probe import probe, waits

SECONDS = 4.0
UNFENCED_SECONDS = 20.0
"""Where it is to succeed: a busy server may answer late."""


def _connect(place, seconds):
    address, port = place
    scope = [0, socket.if_nametoindex("eth0")] if ":" in address else []
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect((address, port, *scope))
        return f"connected to {address}:{port}"


def _say(place, seconds):
    address, port = place
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
        speaker.settimeout(seconds)
        speaker.connect((address, port))
        speaker.send(b"knock")
        return f"heard from {address}:{port}: {speaker.recv(100)!r}"


def _make(name, way):
    def knock(inputs):
        return way(inputs["places"][name], UNFENCED_SECONDS if inputs.get("control") else SECONDS)

    knock.__name__ = f"reach_{name}"
    probe(waits(knock))


for place in (
    *("apiserver", "apiserver_by_its_service", "kubelet", "etcd", "registry", "controller", "metadata"),
    *("neighbour", "host_service", "host_by_another_address", "host_by_ipv6", "api_by_another_port"),
):
    _make(place, _connect)
_make("neighbour_by_udp", _say)
