"""Talk with remotes in child processes, so that none can exhaust the controller. Called by `controller.git`.

A child serves one question and ends. The next one is started meanwhile and waits,
since its imports take longer than a fetch; one that is not needed for a while is
let go.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from controller.git_problem import too_large, too_many, too_slow
from controller.repository import Commit, GitProblem, Head, Remote

AT_ONCE = 2
"""Fetches at the same time: their memory together with ours stays below the pod's."""
LISTINGS = 4
"""Listings at the same time, which take little."""
OF_ONE_HOST = 2
"""Listings of one host at the same time: a slow one leaves places for the others."""
SPARE_SECONDS = 300.0
_ROOT = Path(__file__).resolve().parents[1]
_PASSED_ON = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")


class Fetches:
    """Listings and fetches, a few at a time. `allow` and `deny` are networks in CIDR form."""

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
        self._network = {"allow": list(allow), "deny": list(deny)}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._listings = asyncio.Semaphore(LISTINGS)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._spare: asyncio.Task[Process] | None = None
        self._letting_go: asyncio.TimerHandle | None = None
        self._closed = False

    async def commit(self, remote: Remote, head: Head, path: str, seconds: float) -> Commit:
        """Subject and tree of a commit, within `seconds` from its turn on. Raises GitProblem."""
        request = {"remote": asdict(remote), "head": asdict(head), "path": path, "seconds": seconds}
        async with self._places:
            told = await self._ask(request, remote, seconds)
        return Commit(str(told["subject"]), str(told["tree"]))

    async def head(self, remote: Remote, ref: dict[str, str], seconds: float) -> Head:
        """Where `ref` is, within `seconds` from its turn on. Raises GitProblem."""
        request = {"remote": asdict(remote), "ref": ref, "seconds": seconds}
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(OF_ONE_HOST))
        async with host, self._listings:
            told = await self._ask(request, remote, seconds)
        return Head(str(told["head"]["name"]), str(told["head"]["commit"]))

    async def close(self) -> None:
        """Lets the waiting child go, and starts no other."""
        self._closed = True
        spare = self._let_go()
        if spare is not None:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await _end(await spare)

    async def _ask(self, request: dict[str, Any], remote: Remote, seconds: float) -> dict[str, Any]:
        """What a child answers to `request`, in a directory that is removed then. Raises GitProblem."""
        place = tempfile.mkdtemp(prefix="git-")
        try:
            told = await self._said({**request, **self._network, "place": place}, remote, seconds)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, True)
        if problem := told.get("problem"):
            raise GitProblem(str(problem["reason"]), str(problem["message"]), bool(problem["passing"]))
        return told

    async def _said(self, request: dict[str, Any], remote: Remote, seconds: float) -> dict[str, Any]:
        child = await self._child()
        try:
            async with asyncio.timeout(seconds):
                said, _ = await child.communicate(json.dumps(request).encode() + b"\n")
        except TimeoutError:
            raise too_slow(remote, seconds) from None
        finally:
            await _end(child)
        with contextlib.suppress(ValueError):
            told = json.loads(said)
            if isinstance(told, dict):
                return told
        raise _death(child.returncode or 0, remote, "ref" in request)

    async def _child(self) -> Process:
        """The waiting child, or a new one; another one is started for the next fetch."""
        waiting, self._spare = self._spare, None
        child = await waiting if waiting is not None else None
        if child is None or child.returncode is not None:
            child = await _start()
        if not self._closed:
            self._spare = asyncio.create_task(_start())
            if self._letting_go:
                self._letting_go.cancel()
            self._letting_go = asyncio.get_running_loop().call_later(SPARE_SECONDS, self._let_go)
        return child

    def _let_go(self) -> "asyncio.Task[Process] | None":
        """The waiting child is waiting no more; it ends."""
        if self._letting_go:
            self._letting_go.cancel()
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.add_done_callback(_kill)
        return spare


def _kill(spare: "asyncio.Task[Process]") -> None:
    if not spare.cancelled() and spare.exception() is None:
        with contextlib.suppress(ProcessLookupError):
            spare.result().kill()


async def _start() -> Process:
    """A child that waits for its request; it has none of our environment's secrets."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # Each arena of the allocator would count as much as a fetch may take.
    environment |= {"PYTHONPATH": str(_ROOT), "MALLOC_ARENA_MAX": "1", "LANG": "C.UTF-8"}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "controller.git_child",
        stdin=PIPE,
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


async def _end(child: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        if child.returncode is None:
            child.kill()
    await child.wait()


def _death(code: int, remote: Remote, listing: bool = False) -> GitProblem:
    """What it means that a child ended without an answer."""
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        return too_many() if listing else too_large()
    message = f"the talk with {remote.host} broke off; it is tried again by itself"
    return GitProblem("Unreachable", message, passing=True)
