"""The pure parts of process 1, by table and property."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1 import termination
from runner.pid1.api import fast_json
from runner.pid1.api.backoff import LONGEST, delay
from runner.pid1.artifacts import files
from runner.pid1.output import encode
from runner.pid1.output.event_queue import BATCH_BYTES, Events
from runner.pid1.output.lines import Lines, text
from runner.pid1.process import memory
from runner.pid1.settings import Settings, SettingsInvalid, take
from runner.pid1.verdict import clip, decide


@given(st.lists(st.binary(max_size=300)), st.integers(8, 64))
def test_no_byte_of_a_line_is_lost_however_it_is_cut(chunks: list[bytes], longest: int) -> None:
    lines = Lines(longest)
    pieces = [piece for chunk in chunks for piece in lines.feed(chunk)] + lines.end()
    whole = b"".join(piece if goes_on else piece + b"\n" for piece, goes_on in pieces)
    sent = b"".join(chunks)
    assert whole == (sent if sent.endswith(b"\n") or not sent else sent + b"\n")
    assert all(len(piece) <= longest for piece, _ in pieces)


@given(st.text(max_size=400), st.integers(8, 40))
def test_characters_are_not_cut_in_two(line: str, longest: int) -> None:
    lines = Lines(longest)
    data = line.replace("\n", "").encode("utf-8", "replace")
    assert "".join(text(piece) for piece, _ in lines.feed(data + b"\n")) == data.decode()


@given(st.text(max_size=300), st.integers(120, 400))
def test_log_events_stay_within_their_limit_and_lose_nothing(message: str, limit: int) -> None:
    message = message.encode("utf-8", "replace").decode()
    parts = [json.loads(data) for data in encode.logs(message, "info", False, limit)]
    assert "".join(part["message"] for part in parts) == message
    assert [part.get("continues", False) for part in parts] == [True] * (len(parts) - 1) + [False]


def test_a_time_is_utc_with_microseconds() -> None:
    assert encode.stamp(1_795_255_200_000_123_999) == "2026-11-21T10:00:00.000123Z"


@given(st.lists(st.integers(0, 300_000), max_size=30))
def test_batches_are_whole_numbered_and_bounded(sizes: list[int]) -> None:
    events = Events(holds=1 << 40)
    events.put("t", [("log", json.dumps({"message": "x" * size})) for size in sizes])
    events.close()
    seen: list[int] = []
    while batch := events.batch():
        assert sum(len(encoded) + 2 for _, encoded in batch) <= BATCH_BYTES or len(batch) == 1
        assert len(batch) <= 500
        seen += [number for number, _ in batch]
        events.acknowledge(batch[-1][0])
    assert seen == list(range(1, len(sizes) + 1))


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_back_off_grows_and_stays_bounded(attempt: int, chance: float) -> None:
    assert 0 < delay(attempt, chance) <= LONGEST
    assert delay(attempt + 1, chance) >= delay(attempt, chance)


@given(st.integers(0, 1 << 40), st.one_of(st.none(), st.integers(1 << 20, 1 << 40)))
def test_the_next_look_at_memory_comes_in_time(used: int, limit: int | None) -> None:
    assert 0.005 <= memory.next_look(used, limit) <= 0.5
    if limit is not None and used < limit * 0.9:
        assert not memory.over(used, limit)


def test_file_cache_is_not_the_crews_memory() -> None:
    assert memory.cache("anon 5\nactive_file 10\ninactive_file 20\n") == 30
    assert memory.cache("active_file 1\ntotal_active_file 10\ntotal_inactive_file 20\n") == 30
    assert memory.cache("active_file 1\ninactive_file 2\nslab_reclaimable 4\nslab_unreclaimable 8\n") == 7
    assert memory.cache("") == 0


RESULT = {"result": None}
FAILURE = {"failure": {"reason": "CrewError", "message": "x"}}
EXIT = {"failure": {"reason": "CrewError", "message": "x", "exit": True}}


@pytest.mark.parametrize(
    ("status", "end", "cause", "oom", "expected"),
    [
        (0, RESULT, None, False, ("succeeded", None)),
        (signal.SIGSEGV, RESULT, None, False, ("succeeded", None)),
        (0, RESULT, "stop", False, ("succeeded", None)),
        (signal.SIGTERM, RESULT, "late", False, ("succeeded", None)),
        (0, RESULT, "deadline", False, ("failed", "DeadlineExceeded")),
        (256, FAILURE, None, False, ("failed", "CrewError")),
        (256, FAILURE, "stop", False, ("failed", "CrewError")),
        (256, FAILURE, "deadline", False, ("failed", "DeadlineExceeded")),
        (256, FAILURE, None, True, ("failed", "CrewError")),
        (256, EXIT, "stop", False, ("stopped", None)),
        (0, None, None, False, ("failed", "CrewError")),
        (0, None, "stop", False, ("stopped", None)),
        (signal.SIGKILL, None, "stop", False, ("stopped", None)),
        (signal.SIGKILL, None, "memory", False, ("failed", "OOMKilled")),
        (signal.SIGKILL, None, None, True, ("failed", "OOMKilled")),
        (signal.SIGKILL, None, None, False, ("failed", "CrewError")),
        (signal.SIGSEGV, None, None, True, ("failed", "CrewError")),
        (0, {"failure": {"reason": "Invented", "message": None}}, None, False, ("failed", "CrewError")),
    ],
)
def test_verdicts(
    status: int, end: dict[str, object] | None, cause: str | None, oom: bool, expected: tuple[str, str | None]
) -> None:
    verdict = decide(status, end, cause, oom, 3600.0, 1 << 30)
    assert (verdict.outcome, verdict.reason) == expected
    assert (verdict.message is None) == (verdict.reason is None)


@given(st.text(), st.integers(10, 100))
def test_a_clipped_text_is_bounded_and_keeps_its_end(message: str, most: int) -> None:
    clipped = clip(message, most)
    assert len(clipped.encode()) <= most
    assert message.encode("utf-8", "replace").decode().endswith(clipped.removeprefix("…"))


@given(st.text(max_size=6000))
def test_the_termination_message_fits(message: str) -> None:
    composed = termination.compose("failed", "CrewError", message, False)
    assert len(composed) <= termination.MOST
    assert json.loads(composed)["reported"] is False


ENVIRON = {f"CREWYARD_{name}": "x" for name in ("INTERNAL_URL", "RUN", "RUN_UID", "TOKEN", "POD_UID")}


def test_settings_are_taken_away_from_the_environment() -> None:
    environ = {**ENVIRON, "CREWYARD_RUN": "run-01a", "CREWYARD_OTHER": "y", "HOME": "/home/crew"}
    taken = take(environ)
    assert environ == {"HOME": "/home/crew"}
    assert (taken.run_id, taken.start_timeout, taken.app) == ("run_01a", 300.0, "/app")


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_a_setting_that_is_no_number_is_named(value: str) -> None:
    with pytest.raises(SettingsInvalid, match="CREWYARD_START_TIMEOUT"):
        Settings({**ENVIRON, "CREWYARD_START_TIMEOUT": value})


def test_a_directory_of_very_many_files_is_not_listed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        (tmp_path / f"{number}").touch()
    listed = 0
    scandir = os.scandir

    @contextlib.contextmanager
    def counted(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        def entries(all_: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
            nonlocal listed
            for entry in all_:
                listed += 1
                yield entry

        with scandir(path) as all_:
            yield entries(all_)

    monkeypatch.setattr(files, "MOST_ENTRIES", 5)
    monkeypatch.setattr(os, "scandir", counted)
    found, refused = files.scan(str(tmp_path))
    assert (len(found), listed) == (5, 6)
    assert refused == {".": "there are more than 5 entries"}


def test_a_tree_of_directories_alone_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        (tmp_path / f"{number}").mkdir()
    monkeypatch.setattr(files, "MOST_ENTRIES", 5)
    assert files.scan(str(tmp_path)) == ([], {".": "there are more than 5 entries"})


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES)
def test_json_before_the_grant_is_json(value: object) -> None:
    assert fast_json.loads(
        f" {json.dumps(value, ensure_ascii=False, indent=1)}\n".encode("utf-8", "replace")
    ) == (json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")))
    assert json.loads(fast_json.dumps(value)) == value


@given(_VALUES)
def test_json_with_all_letters_is_json(value: object) -> None:
    written = fast_json.dumps(value, ascii_only=False)
    assert written == json.dumps(value, ensure_ascii=False)
    assert fast_json.loads(written.encode("utf-8", "surrogatepass")) == value


def test_what_is_no_number_is_what_the_caller_makes_of_it() -> None:
    assert fast_json.loads(b'{"a": NaN, "b": -Infinity}', str) == {"a": "NaN", "b": "-Infinity"}


@pytest.mark.parametrize("text", [b"", b" ", b"{", b"{} {}", b"nul", b"\xff", b'{"a": }', b"'a'"])
def test_what_is_no_json_is_told(text: bytes) -> None:
    with pytest.raises(ValueError):
        fast_json.loads(text)


def test_what_cannot_be_json_is_told() -> None:
    with pytest.raises(TypeError, match="set"):
        fast_json.dumps({"a": {1}})


def test_while_the_crew_starts_only_the_c_parts_of_modules_are_imported() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); import runner.pid1.work; "
        "from runner.pid1.process import guard; guard.seal(); "
        "print(sorted({'ctypes', 'enum', 're', 'json', 'socket', 'signal', 'hashlib'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert said.stdout == "[]\n", said.stderr


def test_little_is_imported_before_the_grant() -> None:
    """Each of these takes as long as a claim."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); import runner.pid1.main, "
        "runner.pid1.process.guard, runner.pid1.process.memory, runner.pid1.process.signals, runner.pid1.claim, runner.pid1.process.launch; "
        "slow = {'ctypes', 'enum', 're', 'json', 'socket', 'signal', 'threading', 'subprocess'}; "
        "print(sorted(slow & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=30
    )
    assert said.stdout == "[]\n", said.stderr
