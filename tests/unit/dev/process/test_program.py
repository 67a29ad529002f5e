"""Processes are started, detected, restarted after a change, and stopped."""

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.process import probe as probes
from dev.process import process, program
from dev.process.probe import TcpProbe, UnixProbe
from dev.process.program import ProcessSpec
from dev.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    settings = Settings(tmp_path)
    settings.run.mkdir()
    yield settings
    program.stop(settings, "nap", grace=1)


def nap(*arguments: str, **fields: object) -> ProcessSpec:
    return ProcessSpec(name="nap", argv=("/usr/bin/sleep", *arguments), probe=None, **fields)  # type: ignore[arg-type]


def test_a_running_program_is_not_restarted(settings: Settings) -> None:
    assert program.start(settings, nap("60"))
    first = program.running(settings, "nap")
    assert not program.start(settings, nap("60"))
    assert program.running(settings, "nap") == first


def test_a_changed_program_is_started_again(settings: Settings) -> None:
    program.start(settings, nap("60"))
    first = program.running(settings, "nap")
    assert first is not None
    assert program.start(settings, nap("61"))
    second = program.running(settings, "nap")
    assert second is not None and second.pid != first.pid
    assert process.identity_of(first.pid) != first.identity


def test_a_killed_program_is_started_again(settings: Settings) -> None:
    program.start(settings, nap("60"))
    record = program.running(settings, "nap")
    assert record is not None and process.stop(record.identity, grace=0)
    assert program.running(settings, "nap") is None
    assert program.start(settings, nap("60"))


def test_files_are_written_before_the_start_and_count_as_a_change(settings: Settings) -> None:
    file = settings.configuration / "deep" / "nap.json"
    program.start(settings, nap("60", files={file: "one"}))
    assert file.read_text() == "one"
    assert program.start(settings, nap("60", files={file: "two"}))
    assert file.read_text() == "two"


def test_a_program_that_ends_is_reported_with_its_last_lines(settings: Settings) -> None:
    broken = ProcessSpec(
        name="nap",
        argv=("/bin/sh", "-c", "echo out of rope; sleep 0.05; exit 3"),
        probe=UnixProbe(settings.run / "none.sock"),
        startup_seconds=60,
    )
    program.start(settings, broken)
    with pytest.raises(DevClusterError, match="out of rope"):
        program.wait_ready(settings, broken)


@pytest.mark.parametrize("looked", [0.0, 0.3])
def test_a_program_that_exits_before_it_is_ready_is_restarted(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: float
) -> None:
    """Also if it has exited before its first check."""
    identity_of = process.identity_of
    monkeypatch.setattr(process, "identity_of", lambda pid: time.sleep(looked) or identity_of(pid))
    monkeypatch.setattr(program, "_RESTART_DELAY_SECONDS", 0.05)
    ready, starts = tmp_path / "ready", tmp_path / "starts"
    script = f"echo 1 >> {starts}; test $(wc -l < {starts}) -ge 3 && touch {ready} && exec sleep 60; exit 1"
    late = ProcessSpec(
        name="nap",
        argv=("/bin/sh", "-c", script),
        probe=UnixProbe(settings.run / "nap.sock"),
        startup_seconds=60,
        restarts=2,
    )
    monkeypatch.setattr(probes, "problem", lambda _: None if ready.exists() else "not yet")
    program.start(settings, late)
    program.wait_ready(settings, late)
    assert starts.read_text().count("1") == 3
    program.stop(settings, "nap", grace=1)
    ready.unlink()
    starts.unlink()
    hasty = dataclasses.replace(late, restarts=1)
    program.start(settings, hasty)
    with pytest.raises(DevClusterError, match="nap exited"):
        program.wait_ready(settings, hasty)
    assert starts.read_text().count("1") == 2


def test_a_program_that_is_never_ready_times_out(settings: Settings) -> None:
    mute = dataclasses.replace(nap("60"), probe=TcpProbe("127.0.0.1", 1), startup_seconds=0.1)
    program.start(settings, mute)
    with pytest.raises(DevClusterError, match="was not ready"):
        program.wait_ready(settings, mute)


def test_stopping_a_stopped_program_succeeds(settings: Settings) -> None:
    assert program.stop(settings, "nap")
