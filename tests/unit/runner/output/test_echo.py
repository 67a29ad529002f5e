"""The copy of a crew's lines in the pod's log."""

import os
from collections.abc import Iterator

import pytest

from runner.pid1.output.echo import (
    ECHO_BYTES_PER_SECOND,
    LINE_PREFIX_BYTES,
    MAX_ECHO_BURST_BYTES,
    Echo,
)

LINE = b"x" * (65536 - LINE_PREFIX_BYTES)


class PodLog:
    """The reading end of a pod's standard output."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def read(self) -> bytes:
        """Return what was written since the last call."""
        try:
            return os.read(self.reader, 1 << 20)
        except BlockingIOError:
            return b""


@pytest.fixture
def log() -> Iterator[PodLog]:
    made = PodLog()
    yield made
    os.close(made.reader)
    os.close(made.writer)


def repeated_lines(echo: Echo, log: PodLog, count: int) -> int:
    """Return how many of as many lines reach the log."""
    text = b""
    for _ in range(count):
        echo.write([LINE])
        while part := log.read():
            text += part
            echo.flush()
    return text.count(LINE)


def test_lines_beyond_the_rate_are_not_repeated_and_are_counted(log: PodLog) -> None:
    now = [0.0]
    echo = Echo(log.writer, clock=lambda: now[0])
    burst = MAX_ECHO_BURST_BYTES // 65536
    assert repeated_lines(echo, log, burst + 50) == burst
    now[0] += 1.0
    a_second = ECHO_BYTES_PER_SECOND // 65536
    echo.write([b"later"])
    assert log.read() == b"[runner] 50 lines are not repeated here; the run's events have them\nlater\n"
    assert repeated_lines(echo, log, a_second) == a_second - 1


def test_a_pause_refills_no_more_than_a_burst(log: PodLog) -> None:
    now = [0.0]
    echo = Echo(log.writer, clock=lambda: now[0])
    now[0] += 3600.0
    burst = MAX_ECHO_BURST_BYTES // 65536
    assert repeated_lines(echo, log, burst + 1) == burst


def test_many_short_lines_count_with_their_prefix(log: PodLog) -> None:
    echo = Echo(log.writer, clock=lambda: 0.0)
    lines = [b"a"] * (MAX_ECHO_BURST_BYTES // (1 + LINE_PREFIX_BYTES) + 1)
    echo.write(lines)
    assert log.read() == b""
