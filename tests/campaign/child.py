"""One process of the service, of this tree or of another one, that a test may kill, stop and start again.

Called by `tests.campaign.testbed`. Its output is kept, one file for each start.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import aiohttp

READY_SECONDS = 180.0
"""Until a process that was started answers, on a slow machine that does much else."""
GRACE_SECONDS = 30.0


_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class ChildError(Exception):
    """The process ended or did not get ready; the text has its last lines."""


def _goes_with_its_parent() -> None:
    # A test that is killed itself leaves nothing running.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """`python -m MODULE` in `tree`, ready once `page` of its port answers 200.

    `settings` is its whole environment but for what this process has without `CREWYARD_`; it may be changed
    between two starts. `before` is a command in front of the interpreter.
    """

    def __init__(
        self,
        name: str,
        module: str,
        tree: Path,
        logs: Path,
        settings: Mapping[str, str],
        port: int,
        page: str,
        before: tuple[str, ...] = (),
    ) -> None:
        self.name, self.port, self.tree = name, port, tree
        self.settings = dict(settings)
        self.starts = 0
        self.kills = 0
        self.before = before
        self._module, self._logs, self._page = module, logs, page
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What the last start of it has printed."""
        return self._logs / f"{self.name}-{self.starts}.log"

    @property
    def pid(self) -> int | None:
        """Its process, while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def exit_code(self) -> int | None:
        """How its last start ended; negative for a signal, None while it lives."""
        return self._process.returncode if self._process is not None else None

    async def start(self, ready: bool = True) -> None:
        """Start it and, with `ready`, wait until it is ready. Raises ChildError."""
        assert self.pid is None, f"{self.name} runs already"
        self.starts += 1
        self._logs.mkdir(parents=True, exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CREWYARD_")}
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.before, sys.executable, "-m", self._module,
                cwd=self.tree,
                env={**inherited, **self.settings},
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT,
                preexec_fn=_goes_with_its_parent,
            )  # fmt: skip
        if ready:
            await self.ready()

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until it answers. Raises ChildError where it ends, or does not in time."""
        limit = aiohttp.ClientTimeout(total=5)
        end = asyncio.get_running_loop().time() + seconds
        async with aiohttp.ClientSession(self.url, timeout=limit) as session:
            while True:
                if self.pid is None:
                    raise ChildError(f"{self.name} ended:\n{self.tail()}")
                try:
                    async with session.get(self._page) as answer:
                        if answer.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError):
                    pass
                if asyncio.get_running_loop().time() > end:
                    raise ChildError(f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")
                await asyncio.sleep(0.1)

    def tail(self, lines: int = 30) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, if it lives."""
        if self.pid is not None:
            # It may have exited without a notification yet.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal that ends it, and wait until it has exited."""
        if self._process is None or self.pid is None:
            return
        self.send(number)
        if number == signal.SIGKILL:
            self.kills += 1
        try:
            await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        except TimeoutError:
            raise ChildError(f"{self.name} outlived {number.name}:\n{self.tail()}") from None

    async def restart(self, number: signal.Signals = signal.SIGKILL, ready: bool = True) -> None:
        """Kill it and start it again, at the same port."""
        await self.kill(number)
        await self.start(ready)

    def stop(self) -> None:
        """Halt it, as a machine that hangs: it keeps its connections and does nothing."""
        self.send(signal.SIGSTOP)

    def cont(self) -> None:
        """Continue a stopped process."""
        self.send(signal.SIGCONT)

    async def end(self) -> None:
        """End it, however it is; for the end of a test."""
        self.cont()
        if self._process is not None and self.pid is not None:
            self.send(signal.SIGKILL)
            await self._process.wait()
