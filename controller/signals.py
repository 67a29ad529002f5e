"""SIGTERM and SIGINT end the process. Called by `controller.__main__`, and again after Kopf took them."""

import asyncio
import signal

ENDS = (signal.SIGTERM, signal.SIGINT)


def end_by_signal(stop: asyncio.Event) -> None:
    """Sets `stop` at a signal, instead of what the running loop did at it before."""
    loop = asyncio.get_running_loop()
    for number in ENDS:
        loop.add_signal_handler(number, stop.set)
