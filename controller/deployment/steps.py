"""Steps of a build, derived from its pods alone. Pure. Called by `controller.deployment.decide`.

Pods are `<deployment>-a1`, `-a2` (assemble) and `-d1`, `-d2` (dependencies), each with its step
as an annotation. A recorded pod that no longer exists was deleted externally and counts as a
failed step.
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
class BuildStep:
    """One pod of a build; `pod` is None if it was deleted."""

    kind: PodKind
    number: int
    pod: Pod | None


@dataclass(frozen=True)
class BuildSteps:
    """All steps so far: those with pods, in order, and the latest one."""

    present: tuple[BuildStep, ...]
    latest: BuildStep | None
    total: int

    def next_name(self, deployment: str, kind: PodKind) -> tuple[str, int]:
        """Return name and step of the next pod of a kind."""
        highest = max((step.number for step in self._all() if step.kind == kind), default=0)
        return f"{deployment}-{kind}{highest + 1}", self.total + 1

    def _all(self) -> tuple[BuildStep, ...]:
        return (*self.present, *((self.latest,) if self.latest else ()))


def _parse_name(name: str) -> tuple[PodKind, int] | None:
    match = _NAME.search(name)
    if match is None:
        return None
    return ("a" if match[1] == "a" else "d"), int(match[2])


def build_steps(pods: Iterable[Pod], recorded: str | None) -> BuildSteps:
    """Return the steps of a build; `recorded` is the Deployment's `status.buildPod`."""
    steps: list[tuple[int, BuildStep]] = []
    for pod in pods:
        parsed = _parse_name(pod.name)
        if parsed is not None:
            steps.append((int(pod.annotations.get(ANNOTATION_STEP, 0)), BuildStep(*parsed, pod)))
    steps.sort(key=lambda entry: entry[0])
    present = tuple(step for _, step in steps)
    newest = present[-1] if present else None
    known = _parse_name(recorded) if recorded else None
    if known is not None and all(step.pod is None or step.pod.name != recorded for step in present):
        lost = BuildStep(*known, None)
        if newest is None or _total((*present, lost)) > steps[-1][0]:
            newest = lost
    total = max(_total((*present, *((newest,) if newest else ()))), steps[-1][0] if steps else 0)
    return BuildSteps(present, newest, total)


def _total(steps: Sequence[BuildStep]) -> int:
    return sum(
        max((step.number for step in steps if step.kind == kind), default=0)
        for kind in (ASSEMBLE, DEPENDENCIES)
    )
