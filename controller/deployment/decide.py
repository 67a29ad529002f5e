"""What is to be done about one Deployment until it is built or failed. Pure.

assemble → (the dependency image is missing: dependencies → assemble again) →
built. A pod that broke is followed by another one, three times in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller import owner, triggers
from controller.config import Config, Timing
from controller.decision import NOTHING, Create, Decision, Delete, Note
from controller.deployment import answer, pod, status
from controller.deployment.attempts import ASSEMBLE, DEPENDENCIES, Attempts, PodKind, Step, attempts
from crds import conditions, kinds
from crds.objects import Deployment, Pod, Project
from crds.reasons import BuildReason
from crds.times import parse_time

MAX_BROKEN = 3
MAX_NEEDS = 2


@dataclass(frozen=True)
class Observed:
    """What a look at a Deployment found; `queue` says why it must wait, or is empty."""

    deployment: Deployment
    project: Project | None
    pods: Sequence[Pod]
    queue: str = ""


def decide(seen: Observed, now: datetime, config: Config) -> Decision:
    """The Decision for a Deployment."""
    deployment = seen.deployment
    if deployment.deleting:
        return NOTHING
    if deployment.failed or deployment.built:
        return _tidy(seen.pods, deployment.failed, now, config.timing)
    if seen.project is None:
        message = f"There is no project {deployment.project}; create it."
        return Decision(status=status.pending(deployment, status.PROJECT_NOT_FOUND, message, now))
    return _build(seen, seen.project, attempts(seen.pods, deployment.status.get("buildPod")), now, config)


def _build(seen: Observed, project: Project, steps: Attempts, now: datetime, config: Config) -> Decision:
    latest = steps.latest
    if latest is None:
        if seen.queue:
            waits = status.pending(seen.deployment, status.QUEUED, seen.queue, now)
            adoption = owner.adoption(kinds.DEPLOYMENT, seen.deployment, project)
            return Decision(status=waits, after=adoption, requeue_after=5.0)
        return _next(seen, project, steps, ASSEMBLE, None, now, config)
    if latest.pod is not None and not latest.pod.finished:
        return _unfinished(seen, latest.pod, latest, project, now, config.timing)
    if latest.pod is None:
        lost = answer.Broken("the build pod was deleted before it ended")
        return _again(seen, project, steps, lost, latest.kind, now, config)
    said = answer.of_assemble(latest.pod) if latest.kind == ASSEMBLE else answer.of_dependencies(latest.pod)
    if isinstance(said, answer.Built):
        return _built(seen, project, said, now)
    if isinstance(said, answer.Needs):
        if _count(steps, answer.Needs) > MAX_NEEDS:
            return _fail(seen, _vanishing(said), now)
        return _next(seen, project, steps, DEPENDENCIES, said, now, config)
    if isinstance(said, answer.Done):
        return _next(seen, project, steps, ASSEMBLE, None, now, config)
    if isinstance(said, answer.Failure):
        return _fail(seen, said, now)
    return _again(seen, project, steps, said, latest.kind, now, config)


def _said(step: Step) -> object:
    if step.pod is None or not step.pod.finished:
        return None
    return answer.of_assemble(step.pod) if step.kind == ASSEMBLE else answer.of_dependencies(step.pod)


def _count(steps: Attempts, kind: type) -> int:
    return sum(isinstance(_said(step), kind) for step in steps.present)


def _vanishing(needs: answer.Needs) -> answer.Failure:
    return answer.Failure(
        BuildReason.REGISTRY_PUSH,
        f"the dependency image {needs.image} was pushed and is not there",
        "Look at the registry: it may be full, or delete what is pushed.",
    )


def _next(
    seen: Observed,
    project: Project,
    steps: Attempts,
    kind: PodKind,
    needs: answer.Needs | None,
    now: datetime,
    config: Config,
) -> Decision:
    """Makes the next pod."""
    deployment = seen.deployment
    name, step = steps.next_name(deployment.name, kind)
    if kind == DEPENDENCIES and needs is not None:
        body = pod.dependencies(
            deployment, project, name, step, needs.key, needs.image, config, now.timestamp()
        )
        reason, message = status.INSTALLING, "Kaniko installs the dependencies."
    else:
        body = pod.assemble(deployment, project, name, step, config, now.timestamp())
        reason, message = status.ASSEMBLING, "The source is fetched, checked and appended to its image."
    first = (Note("Building", "The build has begun."),) if steps.latest is None else ()
    return Decision(
        create=(Create(kinds.POD, body),),
        status=status.building(deployment, name, reason, message, now),
        after=owner.adoption(kinds.DEPLOYMENT, deployment, project),
        events=first,
    )


def _again(
    seen: Observed,
    project: Project,
    steps: Attempts,
    broken: answer.Broken,
    kind: PodKind,
    now: datetime,
    config: Config,
) -> Decision:
    """Another pod instead of one that broke, after a while, at most three times."""
    useful = _count(steps, answer.Needs) + _count(steps, answer.Done)
    count = steps.total - useful
    if count > MAX_BROKEN:
        message = f"{broken.message} (after {count} attempts)"
        hint = "The installation is at fault rather than the crew; see the pods' events."
        return _fail(seen, answer.Failure(broken.reason, message, hint, broken.log), now)
    ended = _ended(steps.latest.pod) if steps.latest and steps.latest.pod else None
    pause = config.timing.build_retry * 2.0 ** (count - 1)
    left = (ended + timedelta(seconds=pause) - now).total_seconds() if ended else 0.0
    if left > 0:
        return Decision(requeue_after=left)
    needs = next(
        (said for said in map(_said, reversed(steps.present)) if isinstance(said, answer.Needs)), None
    )
    following = DEPENDENCIES if kind == DEPENDENCIES and needs is not None else ASSEMBLE
    decision = _next(seen, project, steps, following, needs, now, config)
    note = Note("BuildRetried", f"{broken.message}; another pod is made", True)
    return Decision(create=decision.create, status=decision.status, after=decision.after, events=(note,))


def _unfinished(
    seen: Observed, build: Pod, step: Step, project: Project, now: datetime, timing: Timing
) -> Decision:
    """Waits for a pod, within limits: one that never starts or never ends is taken away."""
    name = build.name if seen.deployment.status.get("buildPod") != build.name else None
    installing = step.kind == DEPENDENCIES
    reason = status.INSTALLING if installing else status.ASSEMBLING
    message = (
        "Kaniko installs the dependencies."
        if installing
        else "The source is fetched, checked and appended to its image."
    )
    scheduled = conditions.find(build.conditions, "PodScheduled") or {}
    if scheduled.get("status") != "True":
        since, limit = build.created, timing.unschedulable
        if scheduled.get("message"):
            message = f"No node has room: {scheduled['message']}"
    else:
        since = parse_time(scheduled["lastTransitionTime"])
        began = any("waiting" not in (c.get("state") or {"waiting": 0}) for c in build.containers)
        deadline = int(build.spec.get("activeDeadlineSeconds") or timing.build_timeout)
        limit = deadline + timing.lost_after if began else timing.start_timeout
    left = (since + timedelta(seconds=limit) - now).total_seconds()
    wanted = status.building(seen.deployment, name, reason, message, now)
    if build.deleting:
        # A node that does not answer never lets its pod go by itself.
        by = parse_time(str(build.metadata["deletionTimestamp"])) + timedelta(seconds=timing.lost_after)
        left = (by - now).total_seconds()
    adoption = owner.adoption(kinds.DEPLOYMENT, seen.deployment, project)
    if left > 0:
        return Decision(status=wanted, after=adoption, requeue_after=max(left, 5.0))
    note = Note("BuildPodStuck", f"pod {build.name} did not start or end in time and is taken away", True)
    return Decision(
        delete=(Delete(kinds.POD, build.name, build.uid, 0),),
        status=wanted,
        events=(note,),
        requeue_after=5.0,
    )


def _built(seen: Observed, project: Project, said: answer.Built, now: datetime) -> Decision:
    return Decision(
        status=status.built(seen.deployment, said, now),
        events=(Note("Built", f"The image is {said.image}."),),
        enqueue=(triggers.project(project.name),),
    )


def _fail(seen: Observed, failure: answer.Failure, now: datetime) -> Decision:
    return Decision(
        status=status.failed(seen.deployment, failure, now),
        events=(Note(failure.reason, failure.message, True),),
        enqueue=(triggers.project(seen.deployment.project),),
    )


def _ended(build: Pod) -> datetime | None:
    """When the last container of a finished pod ended."""
    times = [((c.get("state") or {}).get("terminated") or {}).get("finishedAt") for c in build.containers]
    return max((parse_time(text) for text in times if text), default=None)


def _tidy(pods: Sequence[Pod], failed: bool, now: datetime, timing: Timing) -> Decision:
    """Deletes build pods an hour after their end; of a failed Deployment also those that still run."""
    delete, again = [], []
    for build in pods:
        if build.deleting:
            continue
        if not build.finished:
            if failed:
                delete.append(Delete(kinds.POD, build.name, build.uid))
            continue
        ended = _ended(build) or build.created
        left = (ended + timedelta(seconds=timing.build_pod_kept) - now).total_seconds()
        if left <= 0:
            delete.append(Delete(kinds.POD, build.name, build.uid))
        else:
            again.append(left)
    return Decision(delete=tuple(delete), requeue_after=min(again) + 1.0 if again else None)
