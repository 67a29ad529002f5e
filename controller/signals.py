"""SIGTERM and SIGINT handlers. Called by `controller.__main__`, and after Kopf installs its own."""

import asyncio
import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signal(stop: asyncio.Event) -> None:
    """Set `stop` on a signal; replaces the loop's previous handlers."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
