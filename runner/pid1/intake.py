"""Reads the crew's three pipes and turns them into events. A thread of its own, started by `work`."""

from __future__ import annotations

import os
import select
import threading
import time

from runner.pid1 import channel, encode, signals
from runner.pid1.echo import Echo
from runner.pid1.launch import Child
from runner.pid1.lines import Lines, text
from runner.pid1.queue import Events

_CHUNK = 65536
_FRAME = 256  # bytes of an event around its data


class Intake(threading.Thread):
    """Ends when all three pipes are at their end, or when `stop_by` has passed and nothing more comes."""

    def __init__(self, child: Child, events: Events, echo: Echo, log_lines: int, event_bytes: int) -> None:
        super().__init__(name="intake", daemon=True)
        self._child = child
        self._events = events
        self._echo = echo
        self._left = log_lines
        self._limit = max(1024, event_bytes - _FRAME)
        self._streams = {child.stdout: Lines(), child.stderr: Lines(), child.channel: Lines(channel.LONGEST)}
        self._torn = False
        self.dropped = 0
        self.end: dict[str, object] | None = None
        self.end_at = 0.0
        self.stop_by = float("inf")

    def run(self) -> None:
        """Reads as fast as the queue takes it: a full queue makes the crew's print wait."""
        poll = select.poll()
        for descriptor in self._streams:
            poll.register(descriptor, select.POLLIN)
        try:
            while self._streams:
                ready = poll.poll(100)
                if (not ready and time.monotonic() >= self.stop_by - 1.0) or time.monotonic() >= self.stop_by:
                    break  # a process that got away still holds a pipe open
                # The event channel last: what was printed before an event is in its pipe before the event is.
                for descriptor, _ in sorted(ready, key=lambda one: one[0] == self._child.channel):
                    data = os.read(descriptor, _CHUNK)
                    lines = self._streams[descriptor].feed(data) if data else self._streams[descriptor].end()
                    self._take(descriptor, lines)
                    if not data:
                        poll.unregister(descriptor)
                        del self._streams[descriptor]
                        os.close(descriptor)
                self._echo.flush()
            for descriptor, stream in self._streams.items():
                self._take(descriptor, stream.end())
        finally:
            signals.poke()

    def _take(self, descriptor: int, lines: list[tuple[bytes, bool]]) -> None:
        if not lines:
            return
        stamp = encode.stamp(time.time_ns())
        if descriptor == self._child.channel:
            self._events.put(stamp, [event for line, goes_on in lines for event in self._said(line, goes_on)])
            return
        level = "info" if descriptor == self._child.stdout else "error"
        self._echo.write([line for line, _ in lines])
        kept = lines[: self._left]
        self._left -= len(kept)
        self.dropped += len(lines) - len(kept)
        self._events.put(
            stamp,
            [
                ("log", data)
                for line, goes_on in kept
                for data in encode.logs(text(line), level, goes_on, self._limit)
            ],
        )

    def _said(self, line: bytes, goes_on: bool) -> list[tuple[str, str]]:
        if goes_on or self._torn:
            first, self._torn = not self._torn, goes_on
            return [
                ("log", encode.log("A line on the event channel was too long and was dropped.", "warning"))
            ][:first]
        said = channel.understand(line, self._limit)
        if said.trouble:
            return [("log", encode.log(said.trouble, "warning"))]
        if said.end is not None:
            if self.end is None:
                self.end, self.end_at = said.end, time.monotonic()
            return []
        if said.kind == "log":
            self._echo.write([said.message.encode("utf-8", "replace")])
            if self._left <= 0:
                self.dropped += 1
                return []
            self._left -= 1
        return [(said.kind, said.data)]
