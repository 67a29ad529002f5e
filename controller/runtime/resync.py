"""The truth by list: every 15 s, what lives is listed, and what changed or went missing is looked at again.

The watch only makes this faster. A DELETED that fell into a gap never arrives by
watch; here it shows as something known that is absent. Made as a task before
Kopf is started, so that a watcher that ended unnoticed costs latency only.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller.runtime.cache import Known, version
from controller.runtime.event_handlers import Observer
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Pod, Run
from kube import errors
from kube.client import Kube

LOG = structlog.get_logger("resync")
UNFINISHED_RUN = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Canceled"
UNFINISHED_POD = "status.phase!=Succeeded,status.phase!=Failed"
CERTAIN = 5
"""Looks in a row, a second apart, that find an older state than was seen."""
OURS = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"


class SetBack(Exception):
    """The apiserver has an older state than was seen: etcd was restored from a copy.

    What is remembered is worth nothing then, nor is any watch; a process that begins again has neither.
    """


@dataclass(frozen=True)
class Lookup:
    """One list; `lives` says of a known object whether that list would show it."""

    kind: Kind
    labels: str
    fields: str
    lives: Callable[[dict[str, object]], bool]


LOOKUPS = (
    Lookup(kinds.PROJECT, "", "", lambda obj: True),
    Lookup(kinds.DEPLOYMENT, "", "", lambda obj: True),
    Lookup(kinds.RUN, "", UNFINISHED_RUN, lambda obj: not Run(obj).ended),
    Lookup(kinds.POD, OURS, UNFINISHED_POD, lambda obj: not Pod(obj).finished),
)


class Resync:
    """Lists periodically. `last` is the clock's time of the last complete one, None before the first."""

    def __init__(self, kube: Kube, known: Known, observer: Observer, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._known = known
        self._observer = observer
        self._clock = clock
        self.last: float | None = None
        self._behind = 0
        self.problem = "the first list has not been read yet"

    async def once(self) -> None:
        """One complete look. Raises the errors of `kube.errors`, and SetBack."""
        for lookup in LOOKUPS:
            await self._look(lookup)
        self._behind = 0
        self._prune()
        self.last = self._clock()
        self.problem = ""

    async def run(self, period: float) -> None:
        """Looks every `period` seconds until it is cancelled; after an error again after a second.

        Raises SetBack.
        """
        while True:
            pause = period
            try:
                await self.once()
            except errors.NotFound as error:
                self.problem = f"{names.GROUP} is not installed; apply the CRDs: {error.message}"
                pause = 1.0
            except errors.KubeError as error:
                self.problem = str(error)
                pause = 1.0
            if self.problem:
                LOG.warning("resync failed", problem=self.problem)
            await asyncio.sleep(pause)

    async def _look(self, lookup: Lookup) -> None:
        newest = max(map(version, self._known.all(lookup.kind)), default=0)
        present = set()
        seen_at = 0
        # Page by page: of thousands of pods, whole, the heap would keep the room for ever.
        async for page in self._kube.pages(lookup.kind, lookup.labels, lookup.fields):
            seen_at = int(page.resource_version)
            self._must_be_current(lookup, newest, seen_at)
            for item in page.items:
                present.add(item["metadata"]["name"])
                self._observer.saw(lookup.kind, item)
        for obj in self._known.all(lookup.kind):
            absent = obj["metadata"]["name"] not in present and version(obj) <= seen_at
            if absent and lookup.lives(obj):
                self._observer.gone(lookup.kind, obj)

    def _must_be_current(self, lookup: Lookup, newest: int, seen_at: int) -> None:
        """Raises Unavailable, and SetBack in the end, where a list is older than what was seen before it."""
        if newest <= seen_at:
            return
        # Once, it could be a cache that lags; what is read then must not count as missing or new.
        self._behind += 1
        said = f"{lookup.kind.plural}: seen as of {newest}, listed as of {seen_at}"
        if self._behind < CERTAIN:
            raise errors.Unavailable(0, "Behind", said)
        raise SetBack(f"{said}: was etcd restored? This process begins again")

    def _prune(self) -> None:
        """Forgets ended Runs without a live pod, and finished pods whose Run is forgotten or gone."""
        for obj in self._known.all(kinds.RUN):
            run = Run(obj)
            pod = self._known.get(kinds.POD, run.name)
            if run.ended and (pod is None or Pod(pod).finished):
                self._known.remove(kinds.RUN, run.name)
        for obj in self._known.all(kinds.POD):
            pod_view = Pod(obj)
            if pod_view.finished and self._known.get(kinds.RUN, pod_view.name) is None:
                self._known.remove(kinds.POD, pod_view.name)
