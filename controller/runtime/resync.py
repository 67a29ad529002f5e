"""Resync: lists all live objects every 15 s and enqueues those that changed or disappeared.

The watch only reduces latency. A DELETED event lost in a gap never arrives by watch; the resync
finds it as a cached object that the list lacks. Started before Kopf, so a dead watcher costs
latency only. Called by `controller.process`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller.runtime.cache import ObjectCache, resource_version
from controller.runtime.event_handlers import EventHandlers
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Pod, Run
from kube import errors
from kube.client import KubeClient

LOG = structlog.get_logger("resync")
UNFINISHED_RUN = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Canceled"
UNFINISHED_POD = "status.phase!=Succeeded,status.phase!=Failed"
MAX_STALE_LISTS = 5
"""Consecutive lists, a second apart, that show an older state than the cache."""
MANAGED_PODS = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"


class StateRolledBack(Exception):
    """The apiserver has an older state than the cache: etcd was restored from a backup.

    Cache and watches are then invalid; restart the process to drop both.
    """


@dataclass(frozen=True)
class ResyncList:
    """One list call; `listed` returns whether it would include a cached object."""

    kind: Kind
    labels: str
    fields: str
    listed: Callable[[dict[str, object]], bool]


RESYNC_LISTS = (
    ResyncList(kinds.PROJECT, "", "", lambda obj: True),
    ResyncList(kinds.DEPLOYMENT, "", "", lambda obj: True),
    ResyncList(kinds.RUN, "", UNFINISHED_RUN, lambda obj: not Run(obj).ended),
    ResyncList(kinds.POD, MANAGED_PODS, UNFINISHED_POD, lambda obj: not Pod(obj).finished),
)


class Resync:
    """Lists periodically. `last` is the clock time of the last complete resync, None before the first."""

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        handlers: EventHandlers,
        clock: Callable[[], float],
        on_listed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_listed` is called after each complete list, and after each one that is forbidden."""
        self._kube = kube
        self._cache = cache
        self._handlers = handlers
        self._clock = clock
        self._on_listed = on_listed
        self.last: float | None = None
        self._stale_lists = 0
        self.problem = "the first list has not been read yet"
        self.forbidden = False
        """Whether the last list was forbidden: roles or namespace are missing."""

    async def list_all(self) -> None:
        """List everything once. Raises `kube.errors` and StateRolledBack."""
        for lookup in RESYNC_LISTS:
            await self._list(lookup)
        self._stale_lists = 0
        self._evict_finished()
        self.last = self._clock()
        self.problem = ""
        self.forbidden = False
        self._on_listed()

    async def run(self, period: float) -> None:
        """List every `period` seconds until cancelled; after an error, retry after a second.

        Raises StateRolledBack.
        """
        while True:
            pause = period
            try:
                await self.list_all()
            except errors.KubeNotFound as error:
                self.problem = f"{names.GROUP} is not installed; apply the CRDs: {error.message}"
                pause = 1.0
            except errors.KubeForbidden as error:
                self.problem, self.forbidden = str(error), True
                self._on_listed()
                pause = 1.0
            except errors.KubeError as error:
                self.problem = str(error)
                pause = 1.0
            if self.problem:
                LOG.warning("resync failed", namespace=self._kube.namespace, problem=self.problem)
            await asyncio.sleep(pause)

    async def _list(self, lookup: ResyncList) -> None:
        newest = max(map(resource_version, self._cache.all(lookup.kind)), default=0)
        present = set()
        seen_at = 0
        deleted = self._handlers.deleted_uids
        deleted.clear()
        # Page by page: thousands of whole pods would grow the heap permanently.
        async for page in self._kube.pages(lookup.kind, lookup.labels, lookup.fields):
            seen_at = int(page.resource_version)
            self._check_current(lookup, newest, seen_at)
            for item in page.items:
                if item["metadata"]["uid"] in deleted:
                    # While earlier pages were read; all pages show the state of the first.
                    continue
                present.add(item["metadata"]["name"])
                self._handlers.on_change(lookup.kind, item, listed=True)
        for obj in self._cache.all(lookup.kind):
            absent = obj["metadata"]["name"] not in present and resource_version(obj) <= seen_at
            if absent and lookup.listed(obj):
                self._handlers.on_delete(lookup.kind, obj)

    def _check_current(self, lookup: ResyncList, newest: int, seen_at: int) -> None:
        """Raise Unavailable, finally StateRolledBack, if a list is older than the cache before it."""
        if newest <= seen_at:
            return
        # A single stale list may come from a lagging cache; it must not count as missing or new objects.
        self._stale_lists += 1
        problem = f"{lookup.kind.plural}: seen as of {newest}, listed as of {seen_at}"
        if self._stale_lists < MAX_STALE_LISTS:
            raise errors.KubeUnavailable(0, "Behind", problem)
        raise StateRolledBack(f"{problem}: was etcd restored? Restarting")

    def _evict_finished(self) -> None:
        """Evict ended Runs without a live pod, and finished pods whose Run is not cached."""
        for obj in self._cache.all(kinds.RUN):
            run = Run(obj)
            pods = self._cache.pods_of_run(run.name) if run.ended else []
            if run.ended and all(Pod(pod).finished for pod in pods):
                self._cache.remove(kinds.RUN, run.name)
        for obj in self._cache.all(kinds.POD):
            pod_view = Pod(obj)
            if pod_view.finished and self._cache.get(kinds.RUN, pod_view.run or pod_view.name) is None:
                self._cache.remove(kinds.POD, pod_view.name)
