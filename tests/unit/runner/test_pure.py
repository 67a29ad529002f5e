"""The pure functions of process 1: tables and properties."""

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
from runner.pid1.api.backoff import MAX_DELAY_SECONDS, delay
from runner.pid1.artifacts import files
from runner.pid1.output import encode
from runner.pid1.output.event_queue import MAX_BATCH_BYTES, EventQueue
from runner.pid1.output.lines import LineSplitter, text
from runner.pid1.process import memory
from runner.pid1.settings import RunnerSettings, RunnerSettingsInvalid, pop_settings
from runner.pid1.verdict import clip, deadline_message, decide


@given(st.lists(st.binary(max_size=300)), st.integers(8, 64))
def test_splitting_lines_loses_no_byte(chunks: list[bytes], longest: int) -> None:
    lines = LineSplitter(longest)
    pieces = [piece for chunk in chunks for piece in lines.feed(chunk)] + lines.end()
    whole = b"".join(piece if continues else piece + b"\n" for piece, continues in pieces)
    sent = b"".join(chunks)
    assert whole == (sent if sent.endswith(b"\n") or not sent else sent + b"\n")
    assert all(len(piece) <= longest for piece, _ in pieces)


@given(st.text(max_size=400), st.integers(8, 40))
def test_characters_are_not_split(line: str, longest: int) -> None:
    lines = LineSplitter(longest)
    data = line.replace("\n", "").encode("utf-8", "replace")
    assert "".join(text(piece) for piece, _ in lines.feed(data + b"\n")) == data.decode()


@given(st.text(max_size=300), st.integers(120, 400))
def test_log_events_stay_within_their_limit_and_lose_nothing(message: str, limit: int) -> None:
    message = message.encode("utf-8", "replace").decode()
    parts = [json.loads(data) for data in encode.logs(message, "info", False, limit)]
    assert "".join(part["message"] for part in parts) == message
    assert [part.get("continues", False) for part in parts] == [True] * (len(parts) - 1) + [False]


def test_a_time_is_utc_with_microseconds() -> None:
    assert encode.timestamp(1_795_255_200_000_123_999) == "2026-11-21T10:00:00.000123Z"


@given(st.lists(st.integers(0, 300_000), max_size=30))
def test_batches_are_whole_numbered_and_bounded(sizes: list[int]) -> None:
    events = EventQueue(max_bytes=1 << 40)
    events.put("t", [("log", json.dumps({"message": "x" * size})) for size in sizes])
    events.close()
    numbers: list[int] = []
    while batch := events.batch():
        assert sum(len(encoded) + 2 for _, encoded in batch) <= MAX_BATCH_BYTES or len(batch) == 1
        assert len(batch) <= 500
        numbers += [number for number, _ in batch]
        events.acknowledge(batch[-1][0])
    assert numbers == list(range(1, len(sizes) + 1))


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_back_off_grows_and_stays_bounded(attempt: int, chance: float) -> None:
    assert 0 < delay(attempt, chance) <= MAX_DELAY_SECONDS
    assert delay(attempt + 1, chance) >= delay(attempt, chance)


@given(st.integers(0, 1 << 40), st.one_of(st.none(), st.integers(1 << 20, 1 << 40)))
def test_the_next_memory_check_comes_in_time(used: int, limit: int | None) -> None:
    assert 0.005 <= memory.next_check_seconds(used, limit) <= 0.5
    if limit is not None and used < limit * 0.9:
        assert not memory.exceeds_limit(used, limit)


def test_file_cache_is_not_the_crews_memory() -> None:
    assert memory.reclaimable_bytes("anon 5\nactive_file 10\ninactive_file 20\n") == 30
    assert memory.reclaimable_bytes("active_file 1\ntotal_active_file 10\ntotal_inactive_file 20\n") == 30
    assert (
        memory.reclaimable_bytes("active_file 1\ninactive_file 2\nslab_reclaimable 4\nslab_unreclaimable 8\n")
        == 7
    )
    assert memory.reclaimable_bytes("") == 0


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
    verdict = decide(status, end, cause, deadline_message(3600.0), oom, 1 << 30)
    assert (verdict.outcome, verdict.reason) == expected
    assert (verdict.message is None) == (verdict.reason is None)


@given(st.text(), st.integers(10, 100))
def test_a_clipped_text_is_bounded_and_keeps_its_end(message: str, max_bytes: int) -> None:
    clipped = clip(message, max_bytes)
    assert len(clipped.encode()) <= max_bytes
    assert message.encode("utf-8", "replace").decode().endswith(clipped.removeprefix("…"))


@given(st.text(max_size=6000))
def test_the_termination_message_fits(message: str) -> None:
    composed = termination.compose("failed", "CrewError", message, False)
    assert len(composed) <= termination.MAX_MESSAGE_BYTES
    assert json.loads(composed)["reported"] is False


ENVIRON = {f"CREWYARD_{name}": "x" for name in ("INTERNAL_URL", "RUN", "RUN_UID", "TOKEN", "POD_UID")}


def test_settings_are_removed_from_the_environment() -> None:
    environ = {**ENVIRON, "CREWYARD_RUN": "run-01a", "CREWYARD_OTHER": "y", "HOME": "/home/crew"}
    settings_ = pop_settings(environ)
    assert environ == {"HOME": "/home/crew"}
    assert (settings_.run_id, settings_.start_timeout, settings_.app) == ("run_01a", 300.0, "/app")


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_an_error_names_the_setting_that_is_not_a_number(value: str) -> None:
    with pytest.raises(RunnerSettingsInvalid, match="CREWYARD_START_TIMEOUT"):
        RunnerSettings({**ENVIRON, "CREWYARD_START_TIMEOUT": value})


def test_a_directory_of_very_many_files_is_not_listed_completely(
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

    monkeypatch.setattr(files, "MAX_ENTRIES_PER_SCAN", 5)
    monkeypatch.setattr(os, "scandir", counted)
    found, refused = files.scan(str(tmp_path))
    assert (len(found), listed) == (5, 6)
    assert refused == {".": "there are more than 5 entries"}


def test_a_tree_of_directories_alone_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        (tmp_path / f"{number}").mkdir()
    monkeypatch.setattr(files, "MAX_ENTRIES_PER_SCAN", 5)
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


def test_nan_and_infinity_are_converted_by_the_caller() -> None:
    assert fast_json.loads(b'{"a": NaN, "b": -Infinity}', str) == {"a": "NaN", "b": "-Infinity"}


@pytest.mark.parametrize("text", [b"", b" ", b"{", b"{} {}", b"nul", b"\xff", b'{"a": }', b"'a'"])
def test_invalid_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        fast_json.loads(text)


def test_values_without_a_json_form_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="set"):
        fast_json.dumps({"a": {1}})


def test_only_the_c_parts_of_modules_are_imported_while_the_crew_starts() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); import runner.pid1.supervise; "
        "from runner.pid1.process import guard; guard.protect(); "
        "print(sorted({'ctypes', 'enum', 're', 'json', 'socket', 'signal', 'hashlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


def test_slow_modules_are_not_imported_before_the_grant() -> None:
    """Importing any of these takes as long as a claim."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); import runner.pid1.main, "
        "runner.pid1.process.guard, runner.pid1.process.memory, runner.pid1.process.signals, "
        "runner.pid1.claim, runner.pid1.process.launch; "
        "slow = {'ctypes', 'enum', 're', 'json', 'socket', 'signal', 'threading', 'subprocess'}; "
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "[]\n", done.stderr
