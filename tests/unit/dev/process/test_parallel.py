"""Functions side by side: results, and an error that stops the commands of the others."""

import io
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.process import command
from dev.process.parallel import parallel
from dev.progress import StepProgress


def test_functions_run_at_the_same_time(tmp_path: Path) -> None:
    progress = StepProgress(io.StringIO())
    first, second = tmp_path / "first", tmp_path / "second"

    def meet(own: Path, other: Path) -> str:
        with progress.step(own.name) as step:
            wait = f"touch {own}; until test -e {other}; do sleep 0.05; done"
            command.run(["sh", "-c", wait], step=step, log=tmp_path / f"{own.name}.log", seconds=60)
        return own.name

    with parallel(progress) as start:
        results = start(meet, first, second), start(meet, second, first)
    assert [result.result() for result in results] == ["first", "second"]


def test_an_error_stops_the_commands_of_the_others(tmp_path: Path) -> None:
    progress, running = StepProgress(io.StringIO()), tmp_path / "running"

    def long() -> None:
        with progress.step("long") as step:
            argv = ["sh", "-c", f"touch {running}; exec sleep 3600"]
            command.run(argv, step=step, log=tmp_path / "long.log", seconds=3600)

    def broken() -> None:
        while not running.exists():
            time.sleep(0.01)
        raise DevClusterError("no rope")

    with pytest.raises(DevClusterError, match="no rope"), parallel(progress) as start:
        start(long)
        start(broken)


def test_an_installation_is_not_killed_when_another_step_fails(tmp_path: Path) -> None:
    progress, running, done = StepProgress(io.StringIO()), tmp_path / "running", tmp_path / "done"

    def install() -> None:
        with progress.step("install") as step:
            argv = ["sh", "-c", f"touch {running}; sleep 1; touch {done}"]
            command.run(argv, step=step, log=tmp_path / "apt.log", seconds=60, interruptible=False)

    def broken() -> None:
        while not running.exists():
            time.sleep(0.01)
        raise DevClusterError("no rope")

    with pytest.raises(DevClusterError, match="no rope"), parallel(progress) as start:
        start(install)
        start(broken)
    assert done.exists()


def test_ctrl_c_waits_for_an_installation(tmp_path: Path) -> None:
    running, done = tmp_path / "running", tmp_path / "done"

    def interrupt() -> None:
        while not running.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with StepProgress(io.StringIO()).step("install") as step, pytest.raises(KeyboardInterrupt):
        thread.start()
        argv = ["sh", "-c", f"touch {running}; sleep 1; touch {done}"]
        command.run(argv, step=step, log=tmp_path / "apt.log", seconds=60, interruptible=False)
    thread.join()
    assert done.exists()


def test_an_installation_ends_at_its_own_timeout(tmp_path: Path) -> None:
    with StepProgress(io.StringIO()).step("install") as step, pytest.raises(DevClusterError, match="finish"):
        command.run(["sleep", "60"], step=step, log=tmp_path / "x.log", seconds=0.5, interruptible=False)
