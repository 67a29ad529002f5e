"""Decision about one Deployment until it is built or failed. Pure.

assemble → (the dependency image is missing: dependencies, which also assembles) → (smoke run) → built. A pod
that failed because of the infrastructure is followed by another `assemble`, three times in total. Called by
`controller.deployment.reconcile`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from controller import owner
from controller.build_proof.proof import prove, proven_pod
from controller.build_proof.proven_digests import ProvenDigests
from controller.config import ControllerConfig
from controller.deployment import build_result, deadlines, pod, status
from controller.deployment.smoke import decide as smoke
from controller.deployment.steps import (
    ASSEMBLE,
    DEPENDENCIES,
    BuildSteps,
    PodKind,
    build_steps,
    stages_of,
)
from controller.pods.termination import ended_at
from controller.runtime import event_map
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import kinds
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import BuildReason, ProgressReason
from plan.keys import base_keys

MAX_BROKEN_PODS = 3
MAX_DEPENDENCY_BUILDS_PER_KEY = 2
MAX_DEPENDENCY_BUILDS = 6
WAIT_RETRY_SECONDS = 15.0
DELETION_RETRY_SECONDS = 1.0
_STEP_CONDITIONS = {
    ASSEMBLE: (ProgressReason.ASSEMBLING, "Fetching and checking the source, and appending it to its image."),
    DEPENDENCIES: (ProgressReason.INSTALLING, "Installing the dependencies."),
}
_BuildPodResult = (
    build_result.ImageBuilt
    | build_result.DependenciesMissing
    | build_result.DependenciesPushed
    | build_result.BuildFailure
    | build_result.BuildPodBroken
)
_CANCELED = build_result.BuildFailure(
    BuildReason.CANCELED, "The build was canceled.", "Deploy again to build this source."
)


@dataclass(frozen=True)
class ObservedDeployment:
    """Observed state of a Deployment.

    Before its build: `wait_reason` states why it must wait, or is empty; `reusable` is the Deployment
    whose image it reuses, `in_progress` one being built from the same source. During the build:
    `deleted_images` are images being deleted from the registry, `proven` those that its pods may take. After
    it: `smoke_run` is its smoke run.
    """

    deployment: Deployment
    project: Project | None
    pods: Sequence[Pod]
    wait_reason: str = ""
    source_key: str | None = None
    reusable: Deployment | None = None
    in_progress: Deployment | None = None
    deleted_images: frozenset[str] = frozenset()
    proven: ProvenDigests = field(default_factory=ProvenDigests)
    smoke_run: Run | None = None


def decide(observed: ObservedDeployment, now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision for a Deployment."""
    deployment = observed.deployment
    if deployment.deleting:
        return Decision(delete=deadlines.delete_live_pods(observed.pods))
    if deployment.failed or deployment.built:
        return deadlines.clean_up(deployment, observed.pods, now, config.timing)
    if deployment.cancel:
        return replace(fail(observed, _CANCELED, now), before=smoke.cancel(observed.smoke_run))
    if deployment.awaits_smoke_run:
        return _await_smoke_run(observed, now, config)
    if observed.project is None:
        message = f"Project {deployment.project} does not exist; create it."
        waits = status.pending(deployment, status.PROJECT_NOT_FOUND, message, now)
        return Decision(delete=deadlines.delete_live_pods(observed.pods), status={**waits, "buildPod": None})
    steps = build_steps(observed.pods, deployment.status.get("buildPod"))
    decision = _decide_build(observed, observed.project, steps, now, config)
    if decision.status is None or not steps.present:
        return decision
    recorded = {**decision.status, "stages": stages_of(deployment, steps)}
    # Its pod was created or bound, and the status write that records it failed.
    if (begun_with := pod.source_key_of(observed.pods)) and not deployment.status.get("sourceKey"):
        recorded.setdefault("sourceKey", begun_with)
    if not deployment.status.get("buildPod") and (latest := steps.present[-1].pod) is not None:
        recorded.setdefault("buildPod", latest.name)
    return replace(decision, status=recorded)


def _await_smoke_run(observed: ObservedDeployment, now: datetime, config: ControllerConfig) -> Decision:
    decision = smoke.decide(observed.deployment, observed.smoke_run, now)
    if isinstance(decision, build_result.BuildFailure):
        return fail(observed, decision, now)
    ended = deadlines.clean_up(observed.deployment, observed.pods, now, config.timing)
    waits = [seconds for seconds in (decision.requeue_after, ended.requeue_after) if seconds is not None]
    return replace(decision, delete=ended.delete, requeue_after=min(waits, default=None))


def _decide_build(
    observed: ObservedDeployment, project: Project, steps: BuildSteps, now: datetime, config: ControllerConfig
) -> Decision:
    latest = steps.latest
    if latest is None:
        return _before_first_pod(observed, project, steps, now, config)
    if latest.pod is not None and not latest.pod.finished:
        return _wait_for_pod(observed, project, steps, latest.pod, latest.kind, now, config)
    if latest.pod is None and observed.deleted_images:
        return _wait_for_deletion(observed, (), now)
    if latest.pod is None:
        lost = build_result.BuildPodBroken("the build pod was deleted before it ended")
        return _retry(observed, project, steps, lost, now, config)
    repository = config.repository(project.name)
    result = _result_of(latest.kind, latest.pod, repository)
    if isinstance(result, build_result.ImageBuilt) and result.image in observed.deleted_images:
        deletion = Delete(kinds.POD, latest.pod.name, latest.pod.uid, 0)
        return _wait_for_deletion(observed, (deletion,), now)
    if isinstance(result, build_result.ImageBuilt):
        digest = result.dependencies_digest
        made = [latest.pod, *(by for by, pushed in _pushed(steps, repository) if pushed.digest == digest)]
        return _succeed(observed, project, result, made, now, config)
    if isinstance(result, build_result.DependenciesMissing):
        if (failure := _too_many_dependency_builds(steps, result, repository)) is not None:
            return fail(observed, failure, now)
        return _next_pod(observed, project, steps, result, now, config)
    if isinstance(result, build_result.DependenciesPushed):
        return _next_pod(observed, project, steps, None, now, config)
    if isinstance(result, build_result.BuildFailure):
        return fail(observed, result, now)
    return _retry(observed, project, steps, result, now, config)


def _before_first_pod(
    observed: ObservedDeployment, project: Project, steps: BuildSteps, now: datetime, config: ControllerConfig
) -> Decision:
    """Reuse an image, wait, or create the first pod."""
    deployment, adoption = observed.deployment, owner.adoption(kinds.DEPLOYMENT, observed.deployment, project)
    if observed.reusable is not None and observed.source_key is not None:
        return Decision(
            status=_reused(observed, observed.reusable, observed.source_key, now, config),
            after=adoption,
            events=(ObjectEvent(status.REUSED, f"Reusing the image of {observed.reusable.name}."),),
            enqueue=(event_map.project(project.name),),
        )
    if observed.in_progress is not None:
        message = (
            f"{observed.in_progress.name} is being built from the same source; its image will be reused."
        )
        waits = status.pending(deployment, status.SAME_SOURCE, message, now)
    elif observed.wait_reason:
        waits = status.pending(deployment, status.QUEUED, observed.wait_reason, now)
    else:
        decision = _next_pod(observed, project, steps, None, now, config)
        return replace(decision, status={**(decision.status or {}), "sourceKey": observed.source_key})
    return Decision(
        status={**waits, "sourceKey": observed.source_key}, after=adoption, requeue_after=WAIT_RETRY_SECONDS
    )


def _reused(
    observed: ObservedDeployment, source: Deployment, key: str, now: datetime, config: ControllerConfig
) -> dict[str, Any]:
    reused = status.reused(observed.deployment, source, key, now)
    pod_uid = proven_pod(config.token_keys, config.namespace, source)
    proof = (
        prove(config.token_key, config.namespace, observed.deployment, pod_uid, reused) if pod_uid else None
    )
    return {**reused, "proof": proof}


def _result_of(kind: PodKind, build: Pod, repository: str) -> _BuildPodResult:
    if kind == ASSEMBLE:
        return build_result.of_assemble(build, repository)
    return build_result.of_dependencies(build, repository)


def _results(steps: BuildSteps, repository: str) -> list[_BuildPodResult]:
    """Return the results of all pods that exist."""
    return [_result_of(step.kind, step.pod, repository) for step in steps.present if step.pod is not None]


def _pushed(steps: BuildSteps, repository: str) -> list[tuple[Pod, build_result.DependenciesPushed]]:
    """Return the pods that pushed a dependency image and could not assemble, each with its result."""
    pods = [step.pod for step in steps.present if step.pod is not None]
    results = zip(pods, _results(steps, repository), strict=True)
    return [(made, it) for made, it in results if isinstance(it, build_result.DependenciesPushed)]


def _too_many_dependency_builds(
    steps: BuildSteps, needs: build_result.DependenciesMissing, repository: str
) -> build_result.BuildFailure | None:
    """Return why the missing image is not built again; None if it is. Changed settings need another key."""
    keys = [pushed.key for _, pushed in _pushed(steps, repository)]
    if sum(key in ("", needs.key) for key in keys) < MAX_DEPENDENCY_BUILDS_PER_KEY:
        if len(keys) < MAX_DEPENDENCY_BUILDS:
            return None
        return build_result.BuildFailure(
            BuildReason.BUILD_FAILED,
            f"the settings changed during the build: {len(keys)} dependency images were built for others",
            "Deploy again when the settings of the Project and of the installation stay the same.",
        )
    return build_result.BuildFailure(
        BuildReason.REGISTRY_PUSH,
        f"the dependency image {needs.image} was pushed but is not in the registry",
        "Check the registry: it may be full, or delete pushed images.",
    )


def _next_pod(
    observed: ObservedDeployment,
    project: Project,
    steps: BuildSteps,
    needs: build_result.DependenciesMissing | None,
    now: datetime,
    config: ControllerConfig,
    note: ObjectEvent | None = None,
) -> Decision:
    """Create the next pod: `dependencies` for what `needs`, else `assemble`.

    `note` is its Event unless it is the first pod.
    """
    deployment = observed.deployment
    kind = ASSEMBLE if needs is None else DEPENDENCIES
    name, step = steps.next_name(deployment.name, kind)
    pushed = {image.key: image.digest for _, image in _pushed(steps, config.repository(project.name))}
    if needs is not None:
        wanted = _installable(observed, project, needs, pushed, config)
        body = pod.dependencies(
            deployment, project, name, step, wanted, config, now.timestamp(), observed.source_key
        )
    else:
        images = observed.proven.as_request({key: digest for key, digest in pushed.items() if digest})
        body = pod.assemble(
            deployment, project, name, step, config, now.timestamp(), observed.source_key, images
        )
    reason, message = _STEP_CONDITIONS[kind]
    if steps.latest is None:
        note = ObjectEvent("Building", "The build has started.")
    return Decision(
        create=(Create(kinds.POD, body, (note,) if note else ()),),
        status=status.building(deployment, name, reason, message, now),
        after=owner.adoption(kinds.DEPLOYMENT, deployment, project),
    )


def _installable(
    observed: ObservedDeployment,
    project: Project,
    needs: build_result.DependenciesMissing,
    pushed: Mapping[str, str],
    config: ControllerConfig,
) -> build_result.DependenciesMissing:
    """Return the dependency image to build next: with a proven base image, or that base image itself.

    The base image is built once in a build; without it, Kaniko builds what `needs` names.
    """
    key, by_kaniko = needs.base_key, replace(needs, base_key="", base_digest="")
    if not config.install_in_base or key not in base_keys(config.base_images):
        return by_kaniko
    if needs.base_digest:
        proven = (each.get(key) for each in (observed.proven.shared, observed.proven.dependencies, pushed))
        return needs if needs.base_digest in proven else by_kaniko
    if key in pushed:
        return by_kaniko
    return build_result.DependenciesMissing(key, f"{config.repository(project.name)}:deps-{key}")


def _retry(
    observed: ObservedDeployment,
    project: Project,
    steps: BuildSteps,
    broken: build_result.BuildPodBroken,
    now: datetime,
    config: ControllerConfig,
) -> Decision:
    """Assemble again after a back-off, three times in total: the settings may need other dependencies."""
    useful = (build_result.DependenciesMissing, build_result.DependenciesPushed)
    results = _results(steps, config.repository(project.name))
    count = steps.total - sum(isinstance(result, useful) for result in results)
    if count > MAX_BROKEN_PODS:
        message = f"{broken.message} (after {count} attempts)"
        hint = "The installation is likely at fault, not the crew; check the pods' Events."
        return fail(observed, build_result.BuildFailure(broken.reason, message, hint, broken.log), now)
    ended = ended_at(steps.latest.pod) if steps.latest and steps.latest.pod else None
    pause = config.timing.build_retry * 2.0 ** (count - 1)
    left = (ended + timedelta(seconds=pause) - now).total_seconds() if ended else 0.0
    if left > 0:
        return Decision(requeue_after=left)
    note = ObjectEvent("BuildRetried", f"{broken.message}; creating another pod", True)
    return _next_pod(observed, project, steps, None, now, config, note)


def _wait_for_pod(
    observed: ObservedDeployment,
    project: Project,
    steps: BuildSteps,
    build: Pod,
    kind: PodKind,
    now: datetime,
    config: ControllerConfig,
) -> Decision:
    """Wait for a pod within its deadlines; delete one that never starts or never ends."""
    deployment = observed.deployment
    waits = deadlines.wait(build, now, config.timing)
    reason, message = (waits.reason, waits.message) if waits.reason else _STEP_CONDITIONS[kind]
    name = build.name if deployment.status.get("buildPod") != build.name else None
    desired = status.building(deployment, name, reason, message, now)
    if waits.failure is not None and waits.reason == status.IMAGE_PULL and pod.base_of([build]):
        return _install_by_kaniko(observed, project, steps, build, waits.failure, now, config)
    if waits.failure is not None:
        return fail(observed, waits.failure, now)
    if waits.seconds > 0:
        adoption = owner.adoption(kinds.DEPLOYMENT, deployment, project)
        return Decision(status=desired, after=adoption, requeue_after=waits.seconds)
    note = ObjectEvent("BuildPodStuck", f"pod {build.name} did not start or end in time; deleting it", True)
    removal = Delete(kinds.POD, build.name, build.uid, 0, events=(note,))
    return Decision(delete=(removal,), status=desired, requeue_after=5.0)


def _install_by_kaniko(
    observed: ObservedDeployment,
    project: Project,
    steps: BuildSteps,
    build: Pod,
    failure: build_result.BuildFailure,
    now: datetime,
    config: ControllerConfig,
) -> Decision:
    """Replace a pod whose base image its node cannot pull; fail where no pod names the missing image."""
    results = _results(steps, config.repository(project.name))
    missing = [result for result in results if isinstance(result, build_result.DependenciesMissing)]
    if not missing:
        return fail(observed, failure, now)
    note = ObjectEvent("BuildRetried", f"{failure.message}; Kaniko installs the dependencies", True)
    by_kaniko = replace(missing[-1], base_key="", base_digest="")
    decision = _next_pod(observed, project, steps, by_kaniko, now, config, note)
    return replace(decision, delete=(Delete(kinds.POD, build.name, build.uid, 0),))


def _wait_for_deletion(observed: ObservedDeployment, delete: tuple[Delete, ...], now: datetime) -> Decision:
    """Delay the next pod while the image that the last one found is being deleted from the registry."""
    message = "Waiting until old images are deleted from the registry; then the image is built again."
    desired = status.building(observed.deployment, None, ProgressReason.ASSEMBLING, message, now)
    return Decision(delete=delete, status=desired, requeue_after=DELETION_RETRY_SECONDS)


def _succeed(
    observed: ObservedDeployment,
    project: Project,
    result: build_result.ImageBuilt,
    made: Sequence[Pod],
    now: datetime,
    config: ControllerConfig,
) -> Decision:
    """Accept the image of the first pod of `made`; another one may have pushed its dependencies."""
    deployment, build = observed.deployment, made[0]
    # From the pod, which only the controller makes: many more may write the status. It is the key of the
    # settings that this pod got.
    built = {
        **status.built(deployment, result, now),
        **(pod.base_of(made) or observed.proven.bases.get(result.dependencies_digest, {})),
        "sourceKey": pod.source_key_of([build]),
    }
    # A pod of an earlier version may have found the image under a tag.
    proven = bool(result.dependencies_digest)
    proof = prove(config.token_key, config.namespace, deployment, build.uid, built) if proven else None
    invalid = build_result.BuildFailure(
        BuildReason.CONFIG_INVALID,
        "the configuration has a value that a Deployment cannot store: see its Events",
        "Shorten names and lists in the configuration file.",
    )
    return Decision(
        status={**built, "proof": proof},
        fallback_status=status.failed(deployment, invalid, now),
        events=(ObjectEvent("Built", f"The image is {result.image}."),),
        enqueue=(event_map.project(project.name),),
    )


def fail(observed: ObservedDeployment, failure: build_result.BuildFailure, now: datetime) -> Decision:
    """Return the Decision that fails a build."""
    return Decision(
        status=status.failed(observed.deployment, failure, now),
        events=(ObjectEvent(failure.reason, failure.message, True),),
        enqueue=(event_map.project(observed.deployment.project),),
    )
