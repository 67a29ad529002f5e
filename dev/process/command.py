"""Run commands to completion with a timeout, and keep their output where a person finds it.

Used by every step that calls another program. `read_output` is for short queries, `run` for long work: it
writes a log and shows its last line.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.errors import DevClusterError
from dev.progress import Step

_TAIL_LINES = 15


class CommandFailed(DevClusterError):
    """A program failed. The message has its last lines."""


def read_output(argv: Sequence[str], *, seconds: float = 60, stdin: str | None = None) -> str:
    """Return the command's output. Raises CommandFailed on a nonzero exit code or after `seconds`."""
    try:
        completed = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{argv[0]} did not finish within {seconds:.0f} s: {' '.join(argv)}") from error
    except OSError as error:
        raise CommandFailed(f"{argv[0]} cannot be started: {error}") from error
    if completed.returncode != 0:
        raise CommandFailed(
            f"{' '.join(argv)} failed with exit code {completed.returncode}: "
            f"{completed.stderr.strip() or completed.stdout.strip()}"
        )
    return completed.stdout


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log, or an empty text if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def run(
    argv: Sequence[str],
    *,
    step: Step,
    log: Path,
    seconds: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    interruptible: bool = True,
) -> None:
    """Run long work with all output in `log` and its last line in `step`.

    Raises CommandFailed on a nonzero exit code. Kills the command's process group and raises it after
    `seconds`, or when the step is stopped. If not `interruptible`, the command continues to its end, also
    after Ctrl-C: a killed installation of packages leaves them half configured.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    merged = {**os.environ, **(environment or {})}
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                argv,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=cwd,
                env=merged,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailed(f"{argv[0]} cannot be started: {error}") from error
        try:
            interrupt = _wait(process, step, log, seconds, interruptible)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if interrupt:
        raise interrupt
    if process.returncode != 0:
        raise CommandFailed(
            f"{argv[0]} failed with exit code {process.returncode}. Last lines of {log}:\n{tail(log)}"
        )


def _wait(
    process: subprocess.Popen[bytes], step: Step, log: Path, seconds: float, interruptible: bool
) -> KeyboardInterrupt | None:
    interrupt = None
    for _ in range(int(seconds / 0.5) + 1):
        try:
            process.wait(timeout=0.5)
            return interrupt
        except subprocess.TimeoutExpired:
            step.detail = tail(log, 1).strip()[:100]
        except KeyboardInterrupt as error:
            if interruptible:
                raise
            interrupt = error
        if interruptible and step.stopped.is_set():
            raise CommandFailed(f"{process.args!r} was stopped: another step failed.")
    raise CommandFailed(
        f"{process.args!r} did not finish within {seconds:.0f} s. Last lines of {log}:\n{tail(log)}"
    )
