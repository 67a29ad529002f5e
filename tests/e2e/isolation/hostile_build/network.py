"""Reaches for addresses within."""

import socket

import tries


def _reach(name):
    def reach(places):
        with socket.create_connection(tuple(places["reach"][name]), 5):
            return "it answered"

    reach.__name__ = f"reach_{name}"
    return tries.attempt(reach)


for place in (
    "apiserver",
    "apiserver_by_its_service",
    "kubelet",
    "etcd",
    "metadata",
    "neighbour",
    "api_by_another_port",
    "controller_by_another_port",
):
    _reach(place)
