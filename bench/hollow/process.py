"""Auxiliary process of a measurement: start, wait until ready, end with its parent."""

import asyncio
import ctypes
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

READY_TIMEOUT_SECONDS = 120.0
GRACE_SECONDS = 20.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class ProcessError(Exception):
    """The process exited or did not become ready; the text has its last lines."""


def _die_with_parent() -> None:
    # A killed measurement leaves nothing running.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class MeasurementProcess:
    """Process with the arguments `argv`; `log` gets all its output."""

    def __init__(
        self, name: str, argv: list[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.log = name, log
        self._argv, self._environment = argv, dict(environment or {})
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The live process's id. Raises ProcessError if it has exited."""
        if self._process is None or self._process.returncode is not None:
            raise ProcessError(f"{self.name} is not running:\n{self.tail()}")
        return self._process.pid

    async def start(self, ready: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Start the process and wait until `ready` returns true. Raises ProcessError."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                env={**os.environ, **self._environment},
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )  # fmt: skip
        deadline = asyncio.get_running_loop().time() + READY_TIMEOUT_SECONDS
        while ready is not None and self.pid and not await ready():
            if asyncio.get_running_loop().time() > deadline:
                raise ProcessError(
                    f"{self.name} is not ready after {READY_TIMEOUT_SECONDS:.0f} s:\n{self.tail()}"
                )
            await asyncio.sleep(0.2)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    async def end(self) -> None:
        """Send SIGTERM, and SIGKILL if it does not exit in time."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
