"""How far a build has come, told from its pods alone. Pure; called by `controller.deployment.decide`.

Pods are `<deployment>-a1`, `-a2` (assemble) and `-d1`, `-d2` (dependencies), each
with its step in the build as an annotation. A pod that was recorded and is not
there any more was taken away from outside and counts as a failed step.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from crds.names import GROUP
from crds.objects import Pod

PodKind = Literal["a", "d"]
ASSEMBLE: PodKind = "a"
DEPENDENCIES: PodKind = "d"
ANNOTATION_STEP = f"{GROUP}/step"
_NAME = re.compile(r"-([ad])(\d+)$")


@dataclass(frozen=True)
class Step:
    """One pod of a build; `pod` is None where it was taken away."""

    kind: PodKind
    number: int
    pod: Pod | None


@dataclass(frozen=True)
class Attempts:
    """All steps so far: those whose pods are there, in order, and the latest one."""

    present: tuple[Step, ...]
    latest: Step | None
    total: int

    def next_name(self, deployment: str, kind: PodKind) -> tuple[str, int]:
        """Name and step of the next pod of a kind."""
        highest = max((step.number for step in self._all() if step.kind == kind), default=0)
        return f"{deployment}-{kind}{highest + 1}", self.total + 1

    def _all(self) -> tuple[Step, ...]:
        return (*self.present, *((self.latest,) if self.latest else ()))


def _parse(name: str) -> tuple[PodKind, int] | None:
    found = _NAME.search(name)
    if found is None:
        return None
    return ("a" if found[1] == "a" else "d"), int(found[2])


def attempts(pods: Iterable[Pod], recorded: str | None) -> Attempts:
    """The steps of a build; `recorded` is the Deployment's `status.buildPod`."""
    steps: list[tuple[int, Step]] = []
    for pod in pods:
        parsed = _parse(pod.name)
        if parsed is not None:
            steps.append((int(pod.annotations.get(ANNOTATION_STEP, 0)), Step(*parsed, pod)))
    steps.sort(key=lambda entry: entry[0])
    present = tuple(step for _, step in steps)
    newest = present[-1] if present else None
    known = _parse(recorded) if recorded else None
    if known is not None and all(step.pod is None or step.pod.name != recorded for step in present):
        lost = Step(*known, None)
        if newest is None or _total((*present, lost)) > steps[-1][0]:
            newest = lost
    total = max(_total((*present, *((newest,) if newest else ()))), steps[-1][0] if steps else 0)
    return Attempts(present, newest, total)


def _total(steps: Sequence[Step]) -> int:
    return sum(
        max((step.number for step in steps if step.kind == kind), default=0)
        for kind in (ASSEMBLE, DEPENDENCIES)
    )
