"""Which Runs of a project get a pod now. Pure; called by the admission, which is serial per project."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crds.objects import Pod, Run


@dataclass(frozen=True)
class Admission:
    """`admitted` get a pod; `queued` wait."""

    admitted: tuple[Run, ...]
    queued: tuple[Run, ...]


def place(run: Run) -> tuple[str, str]:
    """A Run's place in its project's queue: first in, first out; names made by the API are monotonic."""
    return str(run.metadata["creationTimestamp"]), run.name


def live(pods: Iterable[Pod], leaves: Callable[[str], bool]) -> list[Pod]:
    """The pods that take a place of the plan: not finished, and of a Run that has not reported or ended.

    A runner that has reported needs a second to be gone, in which its place is free already.
    """
    return [pod for pod in pods if not pod.finished and not leaves(pod.name)]


def admit(candidates: Sequence[Run], pods: Sequence[Pod], limit: int) -> Admission:
    """Fills the free places with the first of `candidates`; `pods` are the project's live ones.

    A candidate that has one of them neither needs a place nor waits for one.
    """
    taken = {uid for pod in pods for uid in pod.owner_uids}
    waiting = sorted((run for run in candidates if run.uid not in taken), key=place)
    free = max(0, limit - len(pods))
    return Admission(tuple(waiting[:free]), tuple(waiting[free:]))
