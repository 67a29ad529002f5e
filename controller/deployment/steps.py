"""Steps of a build, and the seconds of its stages, from its pods alone. Pure.

Pods are `<deployment>-a1`, `-a2` (assemble) and `-d1`, `-d2` (dependencies), each with its step
as an annotation; the first can be one that waited for a build, `warm-<project>-<random>-a1`. A
recorded pod that no longer exists was deleted externally and counts as a failed step.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from controller.deployment.build_result import reported_seconds
from controller.pods.termination import ended_at
from crds.names import GROUP
from crds.objects import Deployment, Pod
from crds.times import format_second

PodKind = Literal["a", "d"]
ASSEMBLE: PodKind = "a"
DEPENDENCIES: PodKind = "d"
ANNOTATION_STEP = f"{GROUP}/step"
_STAGES = ("queued", "fetch", "plan", "dependencies", "assemble")
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
        """Return name and step of the next pod of a kind; a pod that was deleted keeps its name."""
        # The step of a pod is the sum of the highest numbers of both kinds.
        other = max((step.number for step in self._all() if step.kind != kind), default=0)
        return f"{deployment}-{kind}{self.total + 1 - other}", self.total + 1

    def _all(self) -> tuple[BuildStep, ...]:
        return (*self.present, *((self.latest,) if self.latest else ()))


def _parse_name(name: str) -> tuple[PodKind, int] | None:
    match = _NAME.search(name)
    if match is None:
        return None
    return ("a" if match[1] == "a" else "d"), int(match[2])


def build_steps(pods: Iterable[Pod], recorded: str | None) -> BuildSteps:
    """Return the steps of a build; `recorded` is the Deployment's `status.buildPod`.

    Of several pods of a step, which two controllers made, the recorded one counts.
    """
    steps: list[tuple[int, bool, BuildStep]] = []
    for pod in pods:
        parsed = _parse_name(pod.name)
        if parsed is not None:
            step = int(pod.annotations.get(ANNOTATION_STEP, 0))
            steps.append((step, pod.name == recorded, BuildStep(*parsed, pod)))
    steps.sort(key=lambda entry: entry[:2])
    present = tuple(entry[2] for entry in steps)
    newest = present[-1] if present else None
    known = _parse_name(recorded) if recorded else None
    if known is not None and not any(is_recorded for _, is_recorded, _ in steps):
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


def stages_of(deployment: Deployment, steps: BuildSteps) -> list[dict[str, Any]]:
    """Return the stages so far, in order; the last has `startedAt` and no `seconds` while it lasts.

    A retried stage counts all attempts. Times of pods have whole seconds, unlike what assemble measures.
    """
    seconds: dict[str, float] = {}
    running: dict[str, Any] | None = None
    for step in steps.present:
        assert step.pod is not None
        seconds.setdefault("queued", _between(deployment.created, step.pod.assigned))
        if step.pod.finished:
            for name, value in _measured(step, step.pod, seconds).items():
                seconds[name] = seconds.get(name, 0.0) + value
        else:
            running = {"name": _name(step, seconds), "startedAt": format_second(step.pod.assigned)}
    stages = [{"name": name, "seconds": round(seconds[name], 3)} for name in _STAGES if name in seconds]
    if running is not None:
        stages = [*(stage for stage in stages if stage["name"] != running["name"]), running]
    return stages


def _name(step: BuildStep, seconds: Mapping[str, float]) -> str:
    if step.kind != ASSEMBLE:
        return "dependencies"
    return "assemble" if "dependencies" in seconds else "fetch"


def _measured(step: BuildStep, pod: Pod, before: Mapping[str, float]) -> dict[str, float]:
    reported = {name: value for name, value in reported_seconds(pod).items() if name in _STAGES}
    # After the dependencies the source is fetched and planned again, which is part of assembling then.
    assembled = {"assemble": sum(reported.values())} if reported else {}
    if step.kind == ASSEMBLE:
        return assembled if "dependencies" in before else reported
    rest = _between(pod.created, ended_at(pod)) - sum(assembled.values())
    return {"dependencies": max(0.0, rest), **assembled}


def _between(start: datetime, end: datetime | None) -> float:
    return max(0.0, (end - start).total_seconds()) if end else 0.0
