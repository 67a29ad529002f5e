"""Child process that serves requests to git remotes. Called by `fetch_pool` and `lister`."""

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
_INHERITED_VARIABLES = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")
_EXIT_WAIT_SECONDS = 5.0


class GitChild:
    """Started `controller.git.child` process; `requests` counts its requests."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.requests = 0

    @classmethod
    async def start(cls) -> "GitChild":
        """Start a child without the secrets of our environment."""
        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        # Each arena of the allocator would count as much as the memory limit of a request.
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
        """Whether it can serve requests."""
        return self.process.returncode is None

    async def request(self, body: dict[str, Any], remote: Remote, seconds: float) -> dict[str, Any]:
        """Return its response within `seconds`. Raises GitProblem of the remote or of an exited child."""
        self.requests += 1
        try:
            async with asyncio.timeout(seconds):
                response = await self._exchange(body)
        except TimeoutError:
            raise too_slow(remote, seconds) from None
        if response is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), _EXIT_WAIT_SECONDS)
            raise exit_problem(self.process.returncode or 0, remote, body.get("most"))
        if problem := response.get("problem"):
            raise GitProblem(str(problem["reason"]), str(problem["message"]), bool(problem["passing"]))
        return response

    async def end(self) -> None:
        """Kill the process and wait for its exit."""
        self.kill()
        await self.process.wait()

    def kill(self) -> None:
        """Kill the process without waiting."""
        with contextlib.suppress(ProcessLookupError):
            if self.alive:
                self.process.kill()

    async def _exchange(self, body: dict[str, Any]) -> dict[str, Any] | None:
        if self.process.stdin is None or self.process.stdout is None:
            return None
        with contextlib.suppress(ValueError, OSError):
            self.process.stdin.write(json.dumps(body).encode() + b"\n")
            await self.process.stdin.drain()
            response = json.loads(await self.process.stdout.readline())
            return response if isinstance(response, dict) else None
        return None


@contextlib.asynccontextmanager
async def work_dir() -> AsyncIterator[str]:
    """Yield a directory for one request; delete it afterwards."""
    path = tempfile.mkdtemp(prefix="git-")
    try:
        yield path
    finally:
        await asyncio.to_thread(shutil.rmtree, path, True)


def exit_problem(code: int, remote: Remote, max_bytes: int | None) -> GitProblem:
    """Return the problem of a child that exited during a listing, or a fetch of `max_bytes`."""
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        return too_many() if max_bytes is None else too_large(max_bytes)
    message = f"connection to {remote.host} lost; will retry"
    return GitProblem("Unreachable", message, passing=True)
