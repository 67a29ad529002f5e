"""Which Runs of a project get a pod now. Pure; called by the admission, which is serial per project."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crds.objects import Run


@dataclass(frozen=True)
class Admission:
    """`admitted` get a pod; `queued` wait."""

    admitted: tuple[Run, ...]
    queued: tuple[Run, ...]


def place(run: Run) -> tuple[str, str]:
    """A Run's place in its project's queue: first in, first out; names made by the API are monotonic."""
    return str(run.metadata["creationTimestamp"]), run.name


@dataclass(frozen=True)
class Live:
    """How many pods take a place of the plan; `owners` are uids of Runs that have one and do not wait."""

    places: int
    owners: frozenset[str] = frozenset()


def live(pods: Iterable[str], leaves: Callable[[str], bool], owners: Iterable[str] = ()) -> Live:
    """What the names of pods that have not finished say; those do not count whose Run has reported or ended.

    A runner that has reported needs a second to be gone, in which its place is free already.
    """
    return Live(sum(not leaves(name) for name in pods), frozenset(owners))


def admit(candidates: Sequence[Run], live: Live, limit: int) -> Admission:
    """Fills the free places with the first of `candidates`.

    A candidate that has a pod neither needs a place nor waits for one.
    """
    waiting = sorted((run for run in candidates if run.uid not in live.owners), key=place)
    free = max(0, limit - live.places)
    return Admission(tuple(waiting[:free]), tuple(waiting[free:]))
