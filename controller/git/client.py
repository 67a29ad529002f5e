"""Looking at git repositories: the head of a reference, and one commit's subject and tree.

pygit2 blocks. Listings by http, which most looks are, work in threads; what takes
more than that, ssh, long listings and all fetches, which unpack what a stranger
sends, works in processes of its own. Every connection goes by a way out that checks
the address in the same moment. Called by `controller.source.poller`.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import WeakValueDictionary

from controller.config import Config
from controller.git.failure import check, too_slow
from controller.git.fetch_pool import Fetches
from controller.git.lister import Listings
from controller.git.remote import TooLong, listed, near_side
from controller.git.repository import Commit, Head, Remote
from egress.addresses import Rules

THREADS = 32
OF_ONE_HOST = 8
"""Listings of one host at the same time: a slow one leaves threads for the others."""
SHORT = 1 << 20
"""Bytes of a listing in a thread, some 15,000 branches and tags; longer ones take memory we do not have."""
_REMEMBERED = 1000


class Git:
    """What talks to repositories. Every call ends within the configured time."""

    def __init__(self, config: Config) -> None:
        self._rules = Rules.parse(config.net_allow, config.net_deny)
        self._timeout = config.timing.git_timeout
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="git")
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._fetches = Fetches(config.net_allow, config.net_deny, config.limits.context_bytes)
        self._listings = Listings(config.net_allow, config.net_deny)
        self._long: dict[str, None] = {}
        # One for all listings in threads: to make and to remove it took longer than to listen.
        self._place = Path(tempfile.mkdtemp(prefix="git-"))
        near_side(self._place)

    async def close(self) -> None:
        """Starts no more work; what a thread is at ends by its own time limits."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        await self._fetches.close()
        await self._listings.close()
        await asyncio.to_thread(shutil.rmtree, self._place, True)

    async def head(self, remote: Remote, ref: dict[str, str]) -> Head:
        """Where `ref` (branch, tag or commit; the default branch if empty) is. Raises GitProblem."""
        check(remote, ref)
        if "commit" in ref:
            return Head(ref["commit"], ref["commit"])
        if not remote.ssh and remote.url not in self._long:
            try:
                return await self._short(remote, ref)
            except TooLong:
                self._remember(remote.url)
        return await self._listings.head(remote, ref, self._timeout)

    async def commit(self, remote: Remote, head: Head, path: str) -> Commit:
        """Subject and tree of a commit. Raises GitProblem."""
        check(remote, {})
        return await self._fetches.commit(remote, head, path, self._timeout)

    async def _short(self, remote: Remote, ref: Mapping[str, str]) -> Head:
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(OF_ONE_HOST))
        async with host:
            working = asyncio.get_running_loop().run_in_executor(self._pool, self._list, remote, ref)
            try:
                async with asyncio.timeout(self._timeout):
                    return await working
            except TimeoutError:
                raise too_slow(remote, self._timeout) from None

    def _list(self, remote: Remote, ref: Mapping[str, str]) -> Head:
        return listed(remote, ref, self._rules, self._timeout, SHORT, self._place)

    def _remember(self, url: str) -> None:
        """The next listing of `url` needs no first try; those seen last are kept."""
        self._long[url] = None
        while len(self._long) > _REMEMBERED:
            del self._long[next(iter(self._long))]
