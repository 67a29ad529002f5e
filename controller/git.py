"""Looking at git repositories: the head of a reference, and one commit's subject and tree.

pygit2 blocks, so listings work in a few threads of their own, and fetches, which
unpack what a stranger sends, in processes of their own; every connection goes
through `outbound.gate`, which checks address and certificate in the same moment.
Called by `controller.project.source`.
"""

import asyncio
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pygit2

from controller.config import Config
from controller.git_remote import callbacks, gated, too_slow
from controller.git_worker import Fetches
from controller.repository import Commit, GitProblem, Head, Remote, choose
from outbound.addresses import Rules
from outbound.gate import Gate

THREADS = 8


class Git:
    """What talks to repositories. Every call ends within the configured time."""

    def __init__(self, config: Config) -> None:
        self._rules = Rules.parse(config.net_allow, config.net_deny)
        self._timeout = config.timing.git_timeout
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="git")
        self._fetches = Fetches(config.net_allow, config.net_deny)

    async def close(self) -> None:
        """Starts no more work; what a thread is at ends by its own time limits."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        await self._fetches.close()

    async def head(self, remote: Remote, ref: dict[str, str]) -> Head:
        """Where `ref` (branch, tag or commit; the default branch if empty) is. Raises GitProblem."""
        _check(remote)
        if "commit" in ref:
            return Head(ref["commit"], ref["commit"])
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                heads = await loop.run_in_executor(
                    self._pool, lambda: gated(remote, self._rules, self._timeout, lambda g: _list(remote, g))
                )
        except TimeoutError:
            raise too_slow(remote, self._timeout) from None
        return choose(heads, ref)

    async def commit(self, remote: Remote, head: Head, path: str) -> Commit:
        """Subject and tree of a commit. Raises GitProblem."""
        _check(remote)
        return await self._fetches.commit(remote, head, path, self._timeout)


def _check(remote: Remote) -> None:
    if urlsplit(remote.url).scheme not in ("http", "https"):
        raise GitProblem(
            "UnsupportedScheme", "only https:// and http:// are read; change spec.source.git.url"
        )


def _list(remote: Remote, gate: Gate) -> dict[str, str]:
    place = tempfile.mkdtemp(prefix="git-")
    try:
        repository = pygit2.init_repository(str(Path(place)), bare=True)
        anonymous = repository.remotes.create_anonymous(gate.address(remote.url))
        found = anonymous.list_heads(callbacks=callbacks(remote))
        return {str(head.name): str(head.oid) for head in found}
    finally:
        shutil.rmtree(place, ignore_errors=True)
