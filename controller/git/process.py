"""Child process that serves requests to git remotes. Called by `fetch_pool` and `lister`."""

import asyncio
import contextlib
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from typing import Any

from controller.child_process import ChildProcess
from controller.git.failure import too_large, too_many, too_slow
from controller.git.repository import GitProblem, Remote
from kube.owned_directory import git_directory

_EXIT_WAIT_SECONDS = 5.0


class GitChild(ChildProcess):
    """Started `controller.git.child` process; `requests` counts its requests."""

    MODULE = "controller.git.child"

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.requests = 0

    async def request(self, body: dict[str, Any], remote: Remote, seconds: float) -> dict[str, Any]:
        """Return its response within `seconds`. Raises GitProblem of the remote or of an exited child."""
        self.requests += 1
        try:
            async with asyncio.timeout(seconds):
                response = await self.exchange(body)
        except TimeoutError:
            raise too_slow(remote, seconds) from None
        if response is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), _EXIT_WAIT_SECONDS)
            raise exit_problem(self.process.returncode or 0, remote, body.get("most"))
        if problem := response.get("problem"):
            raise GitProblem(str(problem["reason"]), str(problem["message"]), bool(problem["transient"]))
        return response


@contextlib.asynccontextmanager
async def work_dir() -> AsyncIterator[str]:
    """Yield a directory for one request; delete it afterwards."""
    directory = contextlib.ExitStack()
    path = directory.enter_context(git_directory())
    try:
        yield str(path)
    finally:
        await asyncio.to_thread(directory.close)


def exit_problem(code: int, remote: Remote, max_bytes: int | None) -> GitProblem:
    """Return the problem of a child that exited during a listing, or a fetch of `max_bytes`."""
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        return too_many() if max_bytes is None else too_large(max_bytes)
    message = f"connection to {remote.host} lost; will retry"
    return GitProblem("Unreachable", message, transient=True)
