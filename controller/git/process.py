"""A child process that answers questions about remotes. Called by `git_worker` and `git_lister`."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from controller.git.failure import too_large, too_many, too_slow
from controller.git.repository import GitProblem, Remote

_ROOT = Path(__file__).resolve().parents[2]
_PASSED_ON = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")
_LAST_SECONDS = 5.0


class Child:
    """`controller.git.child`, started and waiting; `asked` counts its questions."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.asked = 0

    @classmethod
    async def start(cls) -> "Child":
        """A new one, which has none of our environment's secrets."""
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        # Each arena of the allocator would count as much as a question may take.
        environment |= {"PYTHONPATH": str(_ROOT), "MALLOC_ARENA_MAX": "1", "LANG": "C.UTF-8"}
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "controller.git.child",
                stdin=PIPE,
                stdout=PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        )

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.returncode is None

    async def ask(self, question: dict[str, Any], remote: Remote, seconds: float) -> dict[str, Any]:
        """Its answer, within `seconds`. Raises GitProblem: the remote's, or that of a child that ended."""
        self.asked += 1
        try:
            async with asyncio.timeout(seconds):
                told = await self._told(question)
        except TimeoutError:
            raise too_slow(remote, seconds) from None
        if told is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), _LAST_SECONDS)
            raise death(self.process.returncode or 0, remote, question.get("most"))
        if problem := told.get("problem"):
            raise GitProblem(str(problem["reason"]), str(problem["message"]), bool(problem["passing"]))
        return told

    async def end(self) -> None:
        """Ends it, whatever it is doing."""
        self.kill()
        await self.process.wait()

    def kill(self) -> None:
        """The same, for who cannot wait."""
        with contextlib.suppress(ProcessLookupError):
            if self.alive:
                self.process.kill()

    async def _told(self, question: dict[str, Any]) -> dict[str, Any] | None:
        if self.process.stdin is None or self.process.stdout is None:
            return None
        with contextlib.suppress(ValueError, OSError):
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            await self.process.stdin.drain()
            told = json.loads(await self.process.stdout.readline())
            return told if isinstance(told, dict) else None
        return None


@contextlib.asynccontextmanager
async def workplace() -> AsyncIterator[str]:
    """A directory for one question, which is removed then."""
    place = tempfile.mkdtemp(prefix="git-")
    try:
        yield place
    finally:
        await asyncio.to_thread(shutil.rmtree, place, True)


def death(code: int, remote: Remote, most: int | None) -> GitProblem:
    """What it means that a child ended without an answer: to a listing, or to a fetch of `most` bytes."""
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        return too_many() if most is None else too_large(most)
    message = f"the talk with {remote.host} broke off; it is tried again by itself"
    return GitProblem("Unreachable", message, passing=True)
