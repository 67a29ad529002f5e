"""Steps with elapsed times, on a terminal and in a log."""

import io
import time

import pytest

from dev.process import command
from dev.process.command import CommandFailed
from dev.progress import StepProgress, elapsed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (9.94, "9.9s"), (42.4, "42s"), (60, "1m00s"), (307.9, "5m07s"), (3600, "60m00s")],
)
def test_elapsed(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def test_a_log_gets_one_plain_line_per_step() -> None:
    stream = io.StringIO()
    with StepProgress(stream, clock=iter([10.0, 12.5]).__next__).step("certificates") as step:
        step.detail = "made"
    assert stream.getvalue() == "  2.5s  certificates: made\n"


def test_a_failed_step_is_reported_and_reraises_the_error() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="rope"), StepProgress(stream).step("knots"):
        raise ValueError("rope")
    assert "knots" in stream.getvalue() and "FAILED" in stream.getvalue()


def test_a_terminal_shows_the_step_that_began_last() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = StepProgress(stream)
    with progress.step("outer"), progress.step("inner"):
        while "inner" not in stream.getvalue():
            time.sleep(0.01)
        assert "outer" not in stream.getvalue()


def test_a_quiet_step_leaves_no_line() -> None:
    stream = io.StringIO()
    with StepProgress(stream).step("nothing new") as step:
        step.quiet = True
    assert stream.getvalue() == ""


def test_a_command_error_has_its_arguments_and_last_lines(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CommandFailed, match="no rope"):
        command.read_output(["sh", "-c", "echo no rope >&2; exit 3"])
    log = tmp_path / "x.log"
    with (
        StepProgress(io.StringIO()).step("x") as step,
        pytest.raises(CommandFailed, match="line 99") as caught,
    ):
        command.run(
            ["sh", "-c", "for i in $(seq 99); do echo line $i; done; exit 1"], step=step, log=log, seconds=60
        )
    assert "line 50" not in str(caught.value)
    assert "line 50" in log.read_text()


def test_a_command_that_takes_too_long_is_killed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with (
        StepProgress(io.StringIO()).step("x") as step,
        pytest.raises(CommandFailed, match="did not finish within"),
    ):
        command.run(["sleep", "60"], step=step, log=tmp_path / "x.log", seconds=0.5)
    with pytest.raises(CommandFailed, match="did not finish"):
        command.read_output(["sleep", "60"], seconds=0.2)


def test_a_missing_program_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CommandFailed, match="no-such-program"):
        command.read_output(["no-such-program"])
    with (
        StepProgress(io.StringIO()).step("x") as step,
        pytest.raises(CommandFailed, match="no-such-program cannot be started"),
    ):
        command.run(["no-such-program"], step=step, log=tmp_path / "x.log", seconds=60)
