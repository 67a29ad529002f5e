"""Printed lines, log records and events of the crew arrive in the order in which they were written."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1.output.sync_markers import MarkerSplitter
from tests.unit.runner.conftest import wait_until

MARKER = b"\0\x1ecrewyard:%d.%d\x1e\0"
_NOISE = st.sampled_from(
    [b"a", b"\n", b"\0", b"\x1e", b"\0\x1e", b"\0\x1ecrewyard:", b"1.2", b"\0\x1ecrewyard:x"]
)
_PIECES = st.lists(st.one_of(_NOISE, st.integers(0, 99).map(lambda number: MARKER % (7, number))))


@given(_PIECES, st.lists(st.integers(0, 400)))
def test_splitting_finds_all_markers_and_keeps_other_bytes(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pieces)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = MarkerSplitter()
    found = [piece for a, b in pairwise(bounds) for piece in splitter.feed(stream[a:b])]
    found.append((splitter.end(), None))
    joined = (
        data + (b"\0\x1ecrewyard:%s\x1e\0" % marker.encode() if marker else b"") for data, marker in found
    )
    assert b"".join(joined) == stream
    assert [marker for _, marker in found if marker] == [
        marker for _, marker in MarkerSplitter().feed(stream) if marker
    ]


def _messages(api: Any) -> list[str]:
    return [str(event["data"].get("message", event["data"].get("number"))) for event in api.events]


async def test_ten_thousand_alternations_are_in_order(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import logging, sys
        from crewyard_runtime import emit
        logging.basicConfig(format="%(message)s")
        def kickoff():
            for number in range(0, 20_000, 4):
                print(number)
                emit("step", number=number + 1)
                print(number + 2, file=sys.stderr)
                logging.warning(number + 3) if number % 3 else emit("step", number=number + 3)
        """
    )
    ended = await pod.run()
    assert _messages(api) == [str(number) for number in range(20_000)]
    assert ended.stdout.count(b"crewyard") == 0


async def test_output_of_child_programs_is_in_order(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os, subprocess
        from crewyard_runtime import emit
        def kickoff():
            for number in range(0, 150, 3):
                os.write(1, b"%d\\n" % number)
                emit("step", number=number + 1)
                subprocess.run(["echo", str(number + 2)])
        """
    )
    await pod.run()
    assert _messages(api) == [str(number) for number in range(150)]


async def test_a_line_belongs_where_it_ends(pod: Any, api: Any) -> None:
    pod.crew(
        """
        from crewyard_runtime import emit
        def kickoff():
            print("be", end="")
            emit("step", number=1)
            print("gun")
            print("never ended", end="")
            emit("step", number=2)
        """
    )
    await pod.run()
    assert _messages(api) == ["1", "begun", "2", "never ended"]


async def test_forged_markers_delay_output_only_briefly(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os
        from crewyard_runtime import emit
        def kickoff():
            os.write(1, b"a\\0\\x1ecrewyard:1.1\\x1e\\0b\\n")
            os.write(3, b'{"mark": "9.9", "in": "oe", "event": {"type": "step", "data": {"number": 1}}}\\n')
            os.write(3, b'{"mark": 5, "in": ["o"], "event": {"type": "step", "data": {"number": 2}}}\\n')
            emit("step", number=3)
            print("end")
        """
    )
    ended = await pod.run()
    assert sorted(_messages(api)) == ["1", "2", "3", "ab", "end"]
    assert ended.seconds < 100


@pytest.mark.parametrize(
    "busy", ["2, b'still\\n'", """3, b'{"event": {"type": "busy", "data": {"message": "still"}}}\\n'"""]
)
async def test_a_marker_without_its_event_does_not_block_busy_streams(pod: Any, api: Any, busy: str) -> None:
    """As after a process that was killed inside emit."""
    pod.crew(
        f"""
        import os, threading, time
        def talk():
            while True:
                os.write({busy})
                time.sleep(0.01)
        def kickoff():
            os.write(1, b"\\0\\x1ecrewyard:9.9\\x1e\\0")
            print("received")
            threading.Thread(target=talk, daemon=True).start()
            while not os.path.exists("stop"):
                time.sleep(0.01)
        """
    )
    await pod.start()
    await wait_until(lambda: "received" in _messages(api))
    (pod.app / "stop").touch()
    await pod.wait()
    assert "still" in _messages(api)


async def test_nested_emit_neither_hangs_nor_interleaves(pod: Any, api: Any) -> None:
    """A signal handler or a finalizer can run at any point."""
    pod.crew(
        """
        import signal
        from crewyard_runtime import emit
        inside = 0
        def handler(*_):
            global inside
            inside += 1
            emit("inside", text="y" * 9000)
        def kickoff():
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            for number in range(1500):
                emit("step", text="x" * 9000)
            signal.setitimer(signal.ITIMER_REAL, 0, 0)
            return inside
        """
    )
    await pod.run()
    types = [event["type"] for event in api.events]
    assert (types.count("step"), types.count("inside")) == (1500, api.result["output"])
    assert set(types) == {"step", "inside"}


async def test_a_crew_that_closes_its_descriptors_still_succeeds(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os
        from crewyard_runtime import emit
        def kickoff():
            print("before")
            os.closerange(0, 256)
            own = os.open("mine.txt", os.O_CREAT | os.O_RDWR)
            others = [os.dup(own) for _ in range(5)]
            emit("step", number=1)
            return [own, os.pread(own, 100, 0).decode()]
        """
    )
    await pod.run()
    lines = _messages(api)
    assert lines[:2] == ["before", "1"]
    # The file beside the artifacts is named too.
    assert len(lines) == 3 and "mine.txt" in lines[2]
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", [0, ""])
