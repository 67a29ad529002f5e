"""Git client: the head of a reference, and one commit's subject and tree.

pygit2 blocks. HTTP listings, which are most polls, run in threads; SSH, long listings and all
fetches, which unpack untrusted input, run in child processes. Every connection uses a relay that
checks the address when it connects. Called by `controller.source.poller`.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from weakref import WeakValueDictionary

from controller.config import ControllerConfig
from controller.git.failure import check, too_slow
from controller.git.fetch_pool import FetchPool
from controller.git.lister import ListingPool
from controller.git.remote import ListingTooLong, list_head, local_repository
from controller.git.repository import CommitInfo, Remote, RemoteHead
from egress.addresses import AddressRules
from kube.owned_directory import git_directory

MAX_THREADS = 32
MAX_LISTINGS_PER_HOST = 8
"""Parallel listings per host: a slow host leaves threads for others."""
MAX_THREAD_LISTING_BYTES = 1 << 20
"""Maximum listing in a thread, about 15,000 branches and tags; longer ones need too much memory."""
_MAX_LONG_URLS = 1000


class Git:
    """Git client. Every call ends within the configured timeout."""

    def __init__(self, config: ControllerConfig) -> None:
        self._rules = AddressRules.parse(config.net_allow, config.net_deny)
        self._timeout = config.timing.git_timeout
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="git")
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._fetch_pool = FetchPool(config.net_allow, config.net_deny, config.limits.context_bytes)
        self._listing_pool = ListingPool(config.net_allow, config.net_deny)
        self._long_urls: dict[str, None] = {}
        # One for all listings in threads: creating and deleting it took longer than the listing.
        self._directory = ExitStack()
        self._work_dir = self._directory.enter_context(git_directory())
        local_repository(self._work_dir)

    async def close(self) -> None:
        """Start no more work; running threads end by their own timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._fetch_pool.close()
        await self._listing_pool.close()
        await asyncio.to_thread(self._directory.close)

    async def head(self, remote: Remote, ref: dict[str, str]) -> RemoteHead:
        """Return the head of `ref` (branch, tag or commit; default branch if empty). Raises GitProblem."""
        check(remote, ref)
        if "commit" in ref:
            return RemoteHead(ref["commit"], ref["commit"])
        if not remote.ssh and remote.url not in self._long_urls:
            try:
                return await self._list_in_thread(remote, ref)
            except (ListingTooLong, MemoryError):
                self._remember_long(remote.url)
        return await self._listing_pool.head(remote, ref, self._timeout)

    async def commit(self, remote: Remote, head: RemoteHead, path: str) -> CommitInfo:
        """Return subject and tree of a commit. Raises GitProblem."""
        check(remote, {})
        return await self._fetch_pool.commit(remote, head, path, self._timeout)

    async def _list_in_thread(self, remote: Remote, ref: Mapping[str, str]) -> RemoteHead:
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(MAX_LISTINGS_PER_HOST))
        async with host:
            working = asyncio.get_running_loop().run_in_executor(self._threads, self._list, remote, ref)
            try:
                async with asyncio.timeout(self._timeout):
                    return await working
            except TimeoutError:
                raise too_slow(remote, self._timeout) from None

    def _list(self, remote: Remote, ref: Mapping[str, str]) -> RemoteHead:
        return list_head(remote, ref, self._rules, self._timeout, MAX_THREAD_LISTING_BYTES, self._work_dir)

    def _remember_long(self, url: str) -> None:
        """Remember a URL with a long listing, to skip the thread next time; keep the latest ones."""
        self._long_urls[url] = None
        while len(self._long_urls) > _MAX_LONG_URLS:
            del self._long_urls[next(iter(self._long_urls))]
