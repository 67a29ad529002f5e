"""Event map: from a changed object to the keys to reconcile. Pure. Called by `event_handlers`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controller.runtime.cache import ObjectCache
from controller.runtime.workqueue import ReconcileKey
from crds import kinds, names
from crds.kinds import Kind
from crds.limits import requested_warm_builders, requested_warm_pods
from crds.objects import Deployment, Pod, Project, Run

ADMISSION = "admission"
"""Key kind: reconcile the run queue of a Project."""
SOURCE = "sources"
"""Key kind: poll the git repository of a Project."""
GITHUB = "github"
"""Key kind: report a Deployment to GitHub."""
WARM = "warm"
"""Key kind: keep pods of a Project waiting for runs."""
BUILDERS = "builders"
"""Key kind: keep pods of a Project waiting for builds."""
ATTESTATION = "attestations"
"""Key kind: attest the image of a Deployment."""
COMMIT_STATUS = "commit-statuses"
"""Key kind: report the commit status of a Deployment to GitLab, Gitea or Forgejo."""
SCHEDULES = "schedules"
"""Key kind: start the due Runs of a Project's schedules."""
PULL_AHEAD = "pull-ahead"
"""Key kind: pull the image of a Project ahead to the nodes that have run it."""
ENDED_POD = "ended-pods"
"""Key kind: delete the pod of an ended Run."""

COMPONENT_PRUNE = "prune"
"""Component label of pods that delete images of a Project."""
COMPONENT_PULL = "pull"
"""Component label of pods that pull the image of a Deployment ahead."""
_RECORDS = ("schedules", "pullAhead")
"""Fields of a Project's status, each of one reconciler."""


def project(name: str) -> ReconcileKey:
    """Return the key of a Project's orders and activation."""
    return ReconcileKey(kinds.PROJECT.plural, name)


def deployment(name: str) -> ReconcileKey:
    """Return the key of a Deployment's build."""
    return ReconcileKey(kinds.DEPLOYMENT.plural, name)


def run(name: str) -> ReconcileKey:
    """Return the key of a Run."""
    return ReconcileKey(kinds.RUN.plural, name)


def ended_pod(pod: Pod) -> ReconcileKey:
    """Return the key of the deletion of one pod of an ended Run, not of a later one of its name."""
    return ReconcileKey(ENDED_POD, f"{pod.name}/{pod.uid}")


def admission(name: str) -> ReconcileKey:
    """Return the key of a Project's run queue."""
    return ReconcileKey(ADMISSION, name)


def source(name: str) -> ReconcileKey:
    """Return the key of a Project's git repository."""
    return ReconcileKey(SOURCE, name)


def schedules(name: str) -> ReconcileKey:
    """Return the key of a Project's schedules."""
    return ReconcileKey(SCHEDULES, name)


def pull_ahead(name: str) -> ReconcileKey:
    """Return the key of the images that a Project pulls ahead."""
    return ReconcileKey(PULL_AHEAD, name)


def warm(name: str) -> ReconcileKey:
    """Return the key of a Project's waiting pods."""
    return ReconcileKey(WARM, name)


def builders(name: str) -> ReconcileKey:
    """Return the key of a Project's pods that wait for builds."""
    return ReconcileKey(BUILDERS, name)


def github(name: str) -> ReconcileKey:
    """Return the key of a Deployment's GitHub report."""
    return ReconcileKey(GITHUB, name)


def attestation(name: str) -> ReconcileKey:
    """Return the key of a Deployment's attestation."""
    return ReconcileKey(ATTESTATION, name)


def lacks_attestation(build: Deployment) -> bool:
    """Return whether a Deployment has an image that is not recorded as attested."""
    image, attested = build.image, build.annotations.get(names.ANNOTATION_ATTESTED)
    return bool(image) and not build.deleting and str(image).partition("@")[2] != attested


def commit_status(name: str) -> ReconcileKey:
    """Return the key of a Deployment's commit status."""
    return ReconcileKey(COMMIT_STATUS, name)


def waiting_runs(runs: Iterable[Mapping[str, Any]]) -> Iterator[ReconcileKey]:
    """Yield the keys of the Runs without a pod, which may wait for their Project or Deployment."""
    for view in map(Run, runs):
        if not view.ended and not view.pod:
            yield run(view.name)


def deployments_of(cache: ObjectCache, project: str) -> Iterator[Deployment]:
    """Return the Deployments of a project."""
    return map(Deployment, cache.of_project(kinds.DEPLOYMENT, project))


def unbuilt(cache: ObjectCache, project: str) -> Iterator[ReconcileKey]:
    """Yield the keys of unfinished Deployments of a project; some may wait for the Project itself."""
    for view in deployments_of(cache, project):
        if not view.built and not view.failed:
            yield deployment(view.name)


def keys_of(
    kind: Kind, obj: Mapping[str, Any], cache: ObjectCache, deleted: bool = False
) -> Iterator[ReconcileKey]:
    """Yield the keys to reconcile after `obj` was added, changed or `deleted`."""
    if kind == kinds.RUN:
        yield from _run_keys(Run(obj), deleted)
    elif kind == kinds.POD:
        yield from _pod_keys(Pod(obj), deleted)
    elif kind == kinds.DEPLOYMENT:
        build = Deployment(obj)
        yield deployment(build.name)
        yield project(build.project)
        raw = cache.get(kinds.PROJECT, build.project)
        owner = Project(raw) if raw is not None else None
        if owner is not None and "github" in owner.spec:
            yield github(build.name)
        if owner is not None and "commitStatus" in owner.spec:
            yield commit_status(build.name)
        if owner is not None and owner.active == build.name and requested_warm_pods(owner):
            yield warm(build.project)
        if lacks_attestation(build):
            yield attestation(build.name)
        yield from waiting_runs(cache.runs_of_deployment(build.name))
    elif kind == kinds.PROJECT:
        view = Project(obj)
        yield project(view.name)
        yield source(view.name)
        if view.spec.get("schedules") or view.status.get("schedules"):
            yield schedules(view.name)
        if view.active and view.run_nodes:
            yield pull_ahead(view.name)
        if requested_warm_pods(view) or cache.warm_pods(view.name):
            yield warm(view.name)
        if requested_warm_builders(view) or cache.has_waiting_builders(view.name):
            yield builders(view.name)
        yield from unbuilt(cache, view.name)
        yield from waiting_runs(cache.of_project(kinds.RUN, view.name))
        if "github" in view.spec:
            yield from (github(build.name) for build in deployments_of(cache, view.name))
        if "commitStatus" in view.spec:
            yield from (commit_status(build.name) for build in deployments_of(cache, view.name))


def is_record(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Return whether a version of a Project differs only in records, which no other reconcile waits for."""
    if before is None:
        return False

    def rest(obj: Mapping[str, Any]) -> tuple[object, ...]:
        metadata, status = obj["metadata"], obj.get("status") or {}
        kept = tuple(metadata.get(key) for key in ("uid", "generation", "deletionTimestamp", "labels"))
        return *kept, {key: value for key, value in status.items() if key not in _RECORDS}

    return rest(before) == rest(after) and _annotations(before) == _annotations(after)


def _annotations(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations that the cache keeps; the spec's generation tells changes of kubectl's own."""
    annotations = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key.startswith(f"{names.GROUP}/")}


def _run_keys(view: Run, deleted: bool) -> Iterator[ReconcileKey]:
    yield run(view.name)
    if names.LABEL_SCHEDULE in view.labels and view.project and (view.ended or deleted):
        yield schedules(view.project)
    if names.LABEL_SMOKE in view.labels and view.deployment and (view.ended or deleted):
        yield deployment(view.deployment)
    if (view.ended or view.result is not None) and view.project:
        yield admission(view.project)


def _pod_keys(pod: Pod, deleted: bool) -> Iterator[ReconcileKey]:
    if names.LABEL_RUN in pod.labels:
        yield run(pod.labels[names.LABEL_RUN])
        # Only the pod may reveal the freed slot: its Run may be deleted too.
        if (deleted or pod.finished or pod.deleting) and names.LABEL_PROJECT in pod.labels:
            yield admission(pod.labels[names.LABEL_PROJECT])
    elif pod.warm:
        yield warm(pod.labels.get(names.LABEL_PROJECT, ""))
    elif pod.waits_for_build:
        yield builders(pod.labels.get(names.LABEL_PROJECT, ""))
    elif pod.labels.get(names.LABEL_COMPONENT) == COMPONENT_PRUNE and names.LABEL_PROJECT in pod.labels:
        yield project(pod.labels[names.LABEL_PROJECT])
    elif pod.labels.get(names.LABEL_COMPONENT) == COMPONENT_PULL:
        if pod.finished or deleted:
            yield pull_ahead(pod.labels.get(names.LABEL_PROJECT, ""))
    elif names.LABEL_DEPLOYMENT in pod.labels:
        yield deployment(pod.labels[names.LABEL_DEPLOYMENT])
