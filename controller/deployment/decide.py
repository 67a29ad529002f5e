"""What is to be done about one Deployment until it is built or failed. Pure.

assemble → (the dependency image is missing: dependencies → assemble again) →
built. A pod that broke is followed by another one, three times in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controller import owner
from controller.config import Config
from controller.deployment import build_result, deadlines, pod, status
from controller.deployment.steps import ASSEMBLE, DEPENDENCIES, Attempts, PodKind, Step, attempts
from controller.runtime import event_map
from controller.runtime.decision import Create, Decision, Delete, Note
from crds import kinds
from crds.objects import Deployment, Pod, Project
from crds.reasons import BuildReason

MAX_BROKEN = 3
MAX_NEEDS = 2
WAITS_AGAIN = 15.0
REMOVAL_AGAIN = 1.0
_DOING = {
    ASSEMBLE: (status.ASSEMBLING, "The source is fetched, checked and appended to its image."),
    DEPENDENCIES: (status.INSTALLING, "Kaniko installs the dependencies."),
}


@dataclass(frozen=True)
class Observed:
    """What a look at a Deployment found.

    Before its build: `queue` says why it must wait, or is empty; `key` is its source
    key, `twin` one whose image it takes over, `same` one being built from the same.
    During it: `removed` are images that are going from the registry.
    """

    deployment: Deployment
    project: Project | None
    pods: Sequence[Pod]
    queue: str = ""
    key: str | None = None
    twin: Deployment | None = None
    same: Deployment | None = None
    removed: frozenset[str] = frozenset()


def decide(seen: Observed, now: datetime, config: Config) -> Decision:
    """The Decision for a Deployment."""
    deployment = seen.deployment
    if deployment.deleting:
        return Decision(delete=deadlines.stops(seen.pods))
    if deployment.failed or deployment.built:
        return deadlines.tidy(deployment, seen.pods, now, config.timing)
    if seen.project is None:
        message = f"There is no project {deployment.project}; create it."
        waits = status.pending(deployment, status.PROJECT_NOT_FOUND, message, now)
        return Decision(delete=deadlines.stops(seen.pods), status={**waits, "buildPod": None})
    steps = attempts(seen.pods, deployment.status.get("buildPod"))
    decision = _build(seen, seen.project, steps, now, config)
    begun_with = pod.source_key_of(seen.pods)
    if decision.status is None or not begun_with or deployment.status.get("sourceKey"):
        return decision
    # Its first pod was made, and the status that was to say so was not written.
    return replace(decision, status={**decision.status, "sourceKey": begun_with})


def _build(seen: Observed, project: Project, steps: Attempts, now: datetime, config: Config) -> Decision:
    latest = steps.latest
    if latest is None:
        return _first(seen, project, steps, now, config)
    if latest.pod is not None and not latest.pod.finished:
        return _wait(seen, project, latest.pod, latest.kind, now, config)
    if latest.pod is None and seen.removed:
        return _until_removed(seen, (), now)
    if latest.pod is None:
        lost = build_result.Broken("the build pod was deleted before it ended")
        return _again(seen, project, steps, lost, latest.kind, now, config)
    said = (
        build_result.of_assemble(latest.pod)
        if latest.kind == ASSEMBLE
        else build_result.of_dependencies(latest.pod)
    )
    if isinstance(said, build_result.Built) and said.image in seen.removed:
        gone = Delete(kinds.POD, latest.pod.name, latest.pod.uid, 0)
        return _until_removed(seen, (gone,), now)
    if isinstance(said, build_result.Built):
        return _built(seen, project, said, now)
    if isinstance(said, build_result.Needs):
        if _count(steps, build_result.Needs) > MAX_NEEDS:
            return fail(seen, _vanishing(said), now)
        return _next(seen, project, steps, DEPENDENCIES, said, now, config)
    if isinstance(said, build_result.Done):
        return _next(seen, project, steps, ASSEMBLE, None, now, config)
    if isinstance(said, build_result.Failure):
        return fail(seen, said, now)
    return _again(seen, project, steps, said, latest.kind, now, config)


def _first(seen: Observed, project: Project, steps: Attempts, now: datetime, config: Config) -> Decision:
    """What comes before a pod, or the first one."""
    deployment, adoption = seen.deployment, owner.adoption(kinds.DEPLOYMENT, seen.deployment, project)
    if seen.twin is not None and seen.key is not None:
        return Decision(
            status=status.reused(deployment, seen.twin, seen.key, now),
            after=adoption,
            events=(Note(status.REUSED, f"The image of {seen.twin.name} is taken over."),),
            enqueue=(event_map.project(project.name),),
        )
    if seen.same is not None:
        message = f"{seen.same.name} is being built from the same source; its image will be taken over."
        waits = status.pending(deployment, status.SAME_SOURCE, message, now)
    elif seen.queue:
        waits = status.pending(deployment, status.QUEUED, seen.queue, now)
    else:
        decision = _next(seen, project, steps, ASSEMBLE, None, now, config)
        return replace(decision, status={**(decision.status or {}), "sourceKey": seen.key})
    return Decision(status={**waits, "sourceKey": seen.key}, after=adoption, requeue_after=WAITS_AGAIN)


def _said(step: Step) -> object:
    if step.pod is None or not step.pod.finished:
        return None
    return (
        build_result.of_assemble(step.pod)
        if step.kind == ASSEMBLE
        else build_result.of_dependencies(step.pod)
    )


def _count(steps: Attempts, kind: type) -> int:
    return sum(isinstance(_said(step), kind) for step in steps.present)


def _vanishing(needs: build_result.Needs) -> build_result.Failure:
    return build_result.Failure(
        BuildReason.REGISTRY_PUSH,
        f"the dependency image {needs.image} was pushed and is not there",
        "Look at the registry: it may be full, or delete what is pushed.",
    )


def _next(
    seen: Observed,
    project: Project,
    steps: Attempts,
    kind: PodKind,
    needs: build_result.Needs | None,
    now: datetime,
    config: Config,
    told: Note | None = None,
) -> Decision:
    """Makes the next pod; `told` is what is said of it where it is not the first."""
    deployment = seen.deployment
    name, step = steps.next_name(deployment.name, kind)
    if kind == DEPENDENCIES and needs is not None:
        body = pod.dependencies(
            deployment, project, name, step, needs.key, needs.image, config, now.timestamp()
        )
    else:
        body = pod.assemble(deployment, project, name, step, config, now.timestamp(), seen.key)
    reason, message = _DOING[kind]
    if steps.latest is None:
        told = Note("Building", "The build has begun.")
    return Decision(
        create=(Create(kinds.POD, body, (told,) if told else ()),),
        status=status.building(deployment, name, reason, message, now),
        after=owner.adoption(kinds.DEPLOYMENT, deployment, project),
    )


def _again(
    seen: Observed,
    project: Project,
    steps: Attempts,
    broken: build_result.Broken,
    kind: PodKind,
    now: datetime,
    config: Config,
) -> Decision:
    """Another pod instead of one that broke, after a while, at most three times."""
    useful = _count(steps, build_result.Needs) + _count(steps, build_result.Done)
    count = steps.total - useful
    if count > MAX_BROKEN:
        message = f"{broken.message} (after {count} attempts)"
        hint = "The installation is at fault rather than the crew; see the pods' events."
        return fail(seen, build_result.Failure(broken.reason, message, hint, broken.log), now)
    ended = deadlines.ended(steps.latest.pod) if steps.latest and steps.latest.pod else None
    pause = config.timing.build_retry * 2.0 ** (count - 1)
    left = (ended + timedelta(seconds=pause) - now).total_seconds() if ended else 0.0
    if left > 0:
        return Decision(requeue_after=left)
    needs = next(
        (said for said in map(_said, reversed(steps.present)) if isinstance(said, build_result.Needs)), None
    )
    following = DEPENDENCIES if kind == DEPENDENCIES and needs is not None else ASSEMBLE
    note = Note("BuildRetried", f"{broken.message}; another pod is made", True)
    return _next(seen, project, steps, following, needs, now, config, note)


def _wait(
    seen: Observed, project: Project, build: Pod, kind: PodKind, now: datetime, config: Config
) -> Decision:
    """Waits for a pod, within limits: one that never starts or never ends is taken away."""
    deployment = seen.deployment
    waits = deadlines.wait(build, now, config.timing)
    message = waits.message or _DOING[kind][1]
    name = build.name if deployment.status.get("buildPod") != build.name else None
    wanted = status.building(deployment, name, _DOING[kind][0], message, now)
    removal = Delete(kinds.POD, build.name, build.uid, 0)
    if waits.failure is not None:
        return replace(fail(seen, waits.failure, now), delete=(removal,))
    if waits.left > 0:
        adoption = owner.adoption(kinds.DEPLOYMENT, deployment, project)
        return Decision(status=wanted, after=adoption, requeue_after=waits.left)
    note = Note("BuildPodStuck", f"pod {build.name} did not start or end in time and is taken away", True)
    return Decision(delete=(replace(removal, events=(note,)),), status=wanted, requeue_after=5.0)


def _until_removed(seen: Observed, delete: tuple[Delete, ...], now: datetime) -> Decision:
    """Waits with the next pod: what the last one found in the registry is being removed from there."""
    message = "Old images are being removed from the registry; then the image is made anew."
    wanted = status.building(seen.deployment, None, status.ASSEMBLING, message, now)
    return Decision(delete=delete, status=wanted, requeue_after=REMOVAL_AGAIN)


def _built(seen: Observed, project: Project, said: build_result.Built, now: datetime) -> Decision:
    invalid = build_result.Failure(
        BuildReason.CONFIG_INVALID,
        "the configuration holds a value that a Deployment cannot have: see its Events",
        "Names and lists in the configuration file are too long or too many.",
    )
    return Decision(
        status=status.built(seen.deployment, said, now),
        instead=status.failed(seen.deployment, invalid, now),
        events=(Note("Built", f"The image is {said.image}."),),
        enqueue=(event_map.project(project.name),),
    )


def fail(seen: Observed, failure: build_result.Failure, now: datetime) -> Decision:
    """The end of a build."""
    return Decision(
        status=status.failed(seen.deployment, failure, now),
        events=(Note(failure.reason, failure.message, True),),
        enqueue=(event_map.project(seen.deployment.project),),
    )
