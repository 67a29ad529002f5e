"""Functions side by side: results, and an error that stops the commands of the others."""

import io
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
