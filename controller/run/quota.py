"""Quota of concurrent Runs per project. Pure. Called by the admission, which is serial per project."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crds.objects import Run


@dataclass(frozen=True)
class AdmittedRuns:
    """`admitted` get a pod; `queued` wait."""

    admitted: tuple[Run, ...]
    queued: tuple[Run, ...]


def queue_order(run: Run) -> tuple[str, str]:
    """Return the sort key in the project's queue: first in, first out; names from the API are monotonic."""
    return str(run.metadata["creationTimestamp"]), run.name


@dataclass(frozen=True)
class LivePods:
    """Count of pods that occupy slots of the plan; `owners` are uids of Runs that have a pod."""

    slots: int
    owners: frozenset[str] = frozenset()


def count_live(
    pods: Iterable[str], frees_slot: Callable[[str], bool], owners: Iterable[str] = ()
) -> LivePods:
    """Count unfinished pods by name, without those whose Run has reported a result or ended.

    A runner that has reported needs a second to exit; its slot is free already.
    """
    return LivePods(sum(not frees_slot(name) for name in pods), frozenset(owners))


def admit(candidates: Sequence[Run], live: LivePods, limit: int) -> AdmittedRuns:
    """Fill the free slots with the first of `candidates`.

    A candidate that has a pod neither needs a slot nor waits for one.
    """
    waiting = sorted((run for run in candidates if run.uid not in live.owners), key=queue_order)
    free = max(0, limit - live.slots)
    return AdmittedRuns(tuple(waiting[:free]), tuple(waiting[free:]))
