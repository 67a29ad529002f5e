"""A process is identified by pid and start time, and ended within a deadline."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.process import process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def identity(child: subprocess.Popen[bytes]) -> process.ProcessIdentity:
    process_identity = process.identity_of(child.pid)
    assert process_identity is not None
    return process_identity


def test_a_record_is_read_back_while_the_process_lives(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    process_identity = identity(sleeper)
    record = process.ProcessRecord(process_identity.pid, process_identity.started, "print")
    process.write(tmp_path / "x.pid", record)
    assert process.read(tmp_path / "x.pid") == record


def test_a_record_of_an_earlier_process_with_the_same_id_is_stale(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    process_identity = identity(sleeper)
    process.write(
        tmp_path / "x.pid", process.ProcessRecord(process_identity.pid, process_identity.started - 1, "print")
    )
    assert process.read(tmp_path / "x.pid") is None


@pytest.mark.parametrize("text", ["", "12", "{}", '{"pid": "x"}', "\x00", '{"pid": 1, "started": 2}'])
def test_a_broken_pid_file_counts_as_absent(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.pid").write_text(text)
    assert process.read(tmp_path / "x.pid") is None


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 60
    while process.identity_of(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.identity_of(child.pid) is None
    child.wait()


def test_stop_ends_a_process_by_sigterm(sleeper: subprocess.Popen[bytes]) -> None:
    assert process.stop(identity(sleeper), grace=60)
    assert sleeper.wait(timeout=60) == -15


def test_stop_kills_a_process_that_ignores_sigterm() -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert process.stop(identity(child), grace=0.1)
    assert child.wait(timeout=60) == -9
    child.stdout.close()


def test_stop_leaves_another_process_of_that_id_alone(sleeper: subprocess.Popen[bytes]) -> None:
    process_identity = identity(sleeper)
    assert process.stop(
        process.ProcessIdentity(process_identity.pid, process_identity.started - 1), grace=0.1
    )
    assert sleeper.poll() is None
