"""Reads the crew's three pipes and converts them to events. A separate thread, started by `work`."""

from __future__ import annotations

import os
import select
import threading
import time

from runner.pid1.output import channel, encode
from runner.pid1.output.echo import Echo
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.output.lines import LineSplitter, text
from runner.pid1.output.mask import SecretMask
from runner.pid1.output.stream import READ_BYTES, OutputStream
from runner.pid1.process import signals
from runner.pid1.process.launch import CrewProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_EVENT_FRAME_BYTES = 256  # of an event besides its data
_MARKER_TIMEOUT_SECONDS = 1.0  # wait for the event of a marker, doubled while other events arrive
_MAX_TURN_SECONDS = 0.2  # waiting time that one loop counts at most: a full queue may have blocked it
_MAX_PIPE_BYTES = 4 << 20  # more than the pipes can hold


class OutputCapture(threading.Thread):
    """Finishes at the end of all three pipes, or after `stop_by` when nothing more arrives.

    Keeps lines and events in the order in which the crew's process wrote them: an event is queued when both
    streams have been read up to its marker, and a stream at a marker waits there for the event.
    """

    def __init__(
        self,
        child: CrewProcess,
        events: EventQueue,
        echo: Echo,
        mask: SecretMask,
        log_lines: int,
        event_bytes: int,
        on_question: Callable[[dict[str, object]], None] = lambda message: None,
        on_usage: Callable[[str, int, int], None] = lambda model, prompt, completion: None,
    ) -> None:
        super().__init__(name="capture", daemon=True)
        self._on_question = on_question
        self._on_usage = on_usage
        self._mask = mask
        self._events = events
        self._echo = echo
        self._lines_left = log_lines
        self._limit = max(1024, event_bytes - _EVENT_FRAME_BYTES)
        self._channel = child.channel
        self._channel_lines = LineSplitter(channel.MAX_CHANNEL_LINE_BYTES)
        self._streams = {
            "o": OutputStream(child.stdout, "info", mask.cut_at),
            "e": OutputStream(child.stderr, "error", mask.cut_at),
        }
        self._poll = select.poll()
        self._dropping_line = False
        self.dropped = 0
        self.final_report: dict[str, object] | None = None
        self.final_report_at = 0.0
        self.stop_by = float("inf")

    def run(self) -> None:
        """Read as fast as the queue accepts events: a full queue blocks the crew's print."""
        for descriptor in (self._channel, *(stream.descriptor for stream in self._streams.values())):
            self._poll.register(descriptor, select.POLLIN)
        turn_started = time.monotonic()
        late_bytes = 0  # read after `stop_by`
        try:
            while self._channel >= 0 or not all(stream.ended for stream in self._streams.values()):
                ready = {descriptor for descriptor, _ in self._poll.poll(100)}
                now = time.monotonic()
                if now >= self.stop_by - (0.0 if ready else 1.0) and (
                    not ready or late_bytes > _MAX_PIPE_BYTES
                ):
                    break  # an escaped process still holds a pipe open
                self._expire_markers(min(_MAX_TURN_SECONDS, now - turn_started), self._channel in ready)
                turn_started = now
                count = sum(
                    self._read(stream) for stream in self._streams.values() if stream.descriptor in ready
                )
                if self._channel in ready:
                    count += self._read_channel()
                if ready:
                    late_bytes += count if time.monotonic() >= self.stop_by else 0
                self._echo.flush()
            self._resume()
            for stream in self._streams.values():
                self._print(stream, stream.drain())
        finally:
            signals.wake_main_thread()

    def _read(self, stream: OutputStream) -> int:
        if stream.ended or stream.waiting_marker is not None:
            return 0
        count = stream.read()
        if stream.ended:
            self._poll.unregister(stream.descriptor)
            self._print(stream, stream.drain())
        else:
            self._print_lines(stream)
        return count

    def _print_lines(self, stream: OutputStream) -> None:
        self._print(stream, stream.lines())
        if stream.waiting_marker is not None:
            self._poll.unregister(stream.descriptor)

    def _expire_markers(self, seconds: float, channel_ready: bool) -> None:
        """Add `seconds` of waiting to the streams at markers; resume those whose event is overdue.

        `channel_ready`: unread events are available, so wait longer.
        """
        for stream in self._streams.values():
            if stream.waiting_marker is not None:
                stream.waited_seconds += seconds
                if stream.waited_seconds >= _MARKER_TIMEOUT_SECONDS * (1 + channel_ready):
                    self._resume(stream.waiting_marker)

    def _resume(self, marker: str | None = None) -> None:
        """Resume the streams that wait at this marker, or at any marker if None."""
        for stream in self._streams.values():
            while stream.waiting_marker is not None and marker in (None, stream.waiting_marker):
                stream.waiting_marker = None
                self._poll.register(stream.descriptor, select.POLLIN)
                self._print_lines(stream)

    def _read_to_marker(self, stream: OutputStream, marker: str) -> None:
        """Read the stream up to the marker, which is already in the pipe, or never will be."""
        bytes_left = _MAX_PIPE_BYTES
        while not stream.ended and stream.waiting_marker != marker and bytes_left > 0:
            if stream.waiting_marker is not None:
                self._resume(stream.waiting_marker)  # its event should have preceded this one
                continue
            poll = select.poll()
            poll.register(stream.descriptor, select.POLLIN)
            if not poll.poll(0):
                return
            bytes_left -= self._read(stream)

    def _read_channel(self) -> int:
        data = os.read(self._channel, READ_BYTES)
        for line, continues in self._channel_lines.feed(data) if data else self._channel_lines.end():
            self._handle_channel_line(line, continues)
        if not data:
            self._poll.unregister(self._channel)
            os.close(self._channel)
            self._channel = -1
            self._resume()
        return len(data)

    def _print(self, stream: OutputStream, lines: list[tuple[bytes, bool]]) -> None:
        if not lines:
            return
        lines = [(self._mask.line(line), continues) for line, continues in lines]
        self._echo.write([line for line, _ in lines])
        accepted = lines[: self._lines_left]
        self._lines_left -= len(accepted)
        self.dropped += len(lines) - len(accepted)
        self._put(
            [
                ("log", data)
                for line, continues in accepted
                for data in encode.logs(text(line), stream.level, continues, self._limit)
            ]
        )

    def _handle_channel_line(self, line: bytes, continues: bool) -> None:
        if continues or self._dropping_line:
            first, self._dropping_line = not self._dropping_line, continues
            if first:
                self._warn("A line on the event channel was dropped: it is too long.")
            return
        message = channel.parse_line(line, self._limit, self._mask)
        for letter in message.marked_streams:
            self._read_to_marker(self._streams[letter], message.marker)
        if message.error:
            self._warn(message.error)
        elif message.ask is not None:
            self._on_question(message.ask)
        elif message.final_report is not None:
            if self.final_report is None:
                self.final_report, self.final_report_at = message.final_report, time.monotonic()
        elif message.kind != "log":
            self._put([(message.kind, message.data)])
            if message.usage is not None and self.final_report is None:
                self._on_usage(*message.usage)
        else:
            self._echo.write([message.message.encode("utf-8", "replace")])
            if self._lines_left > 0:
                self._lines_left -= 1
                self._put([(message.kind, message.data)])
            else:
                self.dropped += 1
        if message.marker:
            self._resume(message.marker)

    def _warn(self, message: str) -> None:
        self._put([("log", encode.log(message, "warning"))])

    def _put(self, events: list[tuple[str, str]]) -> None:
        self._events.put(encode.timestamp(time.time_ns()), events)
