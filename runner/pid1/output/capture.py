"""Reads the crew's three pipes and turns them into events. A thread of its own, started by `work`."""

from __future__ import annotations

import os
import select
import threading
import time

from runner.pid1.output import channel, encode
from runner.pid1.output.echo import Echo
from runner.pid1.output.event_queue import Events
from runner.pid1.output.lines import Lines, text
from runner.pid1.output.mask import Mask
from runner.pid1.output.stream import CHUNK, Stream
from runner.pid1.process import signals
from runner.pid1.process.launch import Child

_FRAME = 256  # bytes of an event around its data
_QUIET = 1.0  # seconds for which a mark's event is waited for, doubled while other events come
_TURN = 0.2  # seconds of waiting that one turn counts for at most: it may have stood still with a full queue
_PIPES = 4 << 20  # bytes: more than the pipes hold


class Intake(threading.Thread):
    """Ends when all three pipes are at their end, or when `stop_by` has passed and nothing more comes.

    Lines and events are put in the order in which the crew's process said them: an event comes when both
    streams have been read up to its mark, and a stream that has come to a mark waits there for the event.
    """

    def __init__(
        self, child: Child, events: Events, echo: Echo, mask: Mask, log_lines: int, event_bytes: int
    ) -> None:
        super().__init__(name="intake", daemon=True)
        self._mask = mask
        self._events = events
        self._echo = echo
        self._left = log_lines
        self._limit = max(1024, event_bytes - _FRAME)
        self._channel = child.channel
        self._said_lines = Lines(channel.LONGEST)
        self._streams = {"o": Stream(child.stdout, "info"), "e": Stream(child.stderr, "error")}
        self._poll = select.poll()
        self._torn = False
        self.dropped = 0
        self.end: dict[str, object] | None = None
        self.end_at = 0.0
        self.stop_by = float("inf")

    def run(self) -> None:
        """Reads as fast as the queue takes it: a full queue makes the crew's print wait."""
        for descriptor in (self._channel, *(stream.descriptor for stream in self._streams.values())):
            self._poll.register(descriptor, select.POLLIN)
        turned = time.monotonic()
        after = 0  # bytes that came after `stop_by`
        try:
            while self._channel >= 0 or not all(stream.ended for stream in self._streams.values()):
                ready = {descriptor for descriptor, _ in self._poll.poll(100)}
                time_ = time.monotonic()
                if time_ >= self.stop_by - (0.0 if ready else 1.0) and (not ready or after > _PIPES):
                    break  # a process that got away still holds a pipe open
                self._give_up(min(_TURN, time_ - turned), self._channel in ready)
                turned = time_
                count = sum(
                    self._read(stream) for stream in self._streams.values() if stream.descriptor in ready
                )
                if self._channel in ready:
                    count += self._read_channel()
                if ready:
                    after += count if time.monotonic() >= self.stop_by else 0
                self._echo.flush()
            self._release()
            for stream in self._streams.values():
                self._print(stream, stream.rest())
        finally:
            signals.poke()

    def _read(self, stream: Stream) -> int:
        if stream.ended or stream.at is not None:
            return 0
        count = stream.read()
        if stream.ended:
            self._poll.unregister(stream.descriptor)
            self._print(stream, stream.rest())
        else:
            self._go_on(stream)
        return count

    def _go_on(self, stream: Stream) -> None:
        self._print(stream, stream.lines())
        if stream.at is not None:
            self._poll.unregister(stream.descriptor)

    def _give_up(self, seconds: float, talking: bool) -> None:
        """Counts `seconds` of waiting at marks; whose event does not come by then was never written.

        `talking`: there are events to be read, and it may be among them.
        """
        for stream in self._streams.values():
            if stream.at is not None:
                stream.waited += seconds
                if stream.waited >= _QUIET * (1 + talking):
                    self._release(stream.at)

    def _release(self, mark: str | None = None) -> None:
        """Lets the streams go on that wait at this mark, or at any."""
        for stream in self._streams.values():
            while stream.at is not None and mark in (None, stream.at):
                stream.at = None
                self._poll.register(stream.descriptor, select.POLLIN)
                self._go_on(stream)

    def _reach(self, stream: Stream, mark: str) -> None:
        """Reads the stream up to the mark, which is in the pipe already, or else never will be."""
        left = _PIPES
        while not stream.ended and stream.at != mark and left > 0:
            if stream.at is not None:
                self._release(stream.at)  # its event would have come before this one
                continue
            poll = select.poll()
            poll.register(stream.descriptor, select.POLLIN)
            if not poll.poll(0):
                return
            left -= self._read(stream)

    def _read_channel(self) -> int:
        data = os.read(self._channel, CHUNK)
        for line, goes_on in self._said_lines.feed(data) if data else self._said_lines.end():
            self._say(line, goes_on)
        if not data:
            self._poll.unregister(self._channel)
            os.close(self._channel)
            self._channel = -1
            self._release()
        return len(data)

    def _print(self, stream: Stream, lines: list[tuple[bytes, bool]]) -> None:
        if not lines:
            return
        lines = [(self._mask.line(line), goes_on) for line, goes_on in lines]
        self._echo.write([line for line, _ in lines])
        kept = lines[: self._left]
        self._left -= len(kept)
        self.dropped += len(lines) - len(kept)
        self._put(
            [
                ("log", data)
                for line, goes_on in kept
                for data in encode.logs(text(line), stream.level, goes_on, self._limit)
            ]
        )

    def _say(self, line: bytes, goes_on: bool) -> None:
        if goes_on or self._torn:
            first, self._torn = not self._torn, goes_on
            if first:
                self._warn("A line on the event channel was too long and was dropped.")
            return
        said = channel.understand(line, self._limit, self._mask)
        for letter in said.marked:
            self._reach(self._streams[letter], said.mark)
        if said.trouble:
            self._warn(said.trouble)
        elif said.end is not None:
            if self.end is None:
                self.end, self.end_at = said.end, time.monotonic()
        elif said.kind != "log":
            self._put([(said.kind, said.data)])
        else:
            self._echo.write([said.message.encode("utf-8", "replace")])
            if self._left > 0:
                self._left -= 1
                self._put([(said.kind, said.data)])
            else:
                self.dropped += 1
        if said.mark:
            self._release(said.mark)

    def _warn(self, message: str) -> None:
        self._put([("log", encode.log(message, "warning"))])

    def _put(self, events: list[tuple[str, str]]) -> None:
        self._events.put(encode.stamp(time.time_ns()), events)
