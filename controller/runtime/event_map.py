"""Which keys an object's change concerns. Pure; called by the watch and the resync alike."""

from collections.abc import Iterator, Mapping
from typing import Any

from controller.runtime.cache import Known
from controller.runtime.workqueue import Key
from crds import kinds, names
from crds.kinds import Kind
from crds.objects import Deployment, Pod, Project, Run

ADMISSION = "admission"
"""A key of this kind names a Project whose queue of Runs is to be looked at."""
SOURCE = "sources"
"""A key of this kind names a Project whose git repository is to be looked at."""
GITHUB = "github"
"""A key of this kind names a Deployment that GitHub is to be told about."""


COMPONENT_PRUNE = "prune"
"""The label of pods that remove images of a Project."""


def project(name: str) -> Key:
    """The key of a Project's orders and activation."""
    return Key(kinds.PROJECT.plural, name)


def deployment(name: str) -> Key:
    """The key of a Deployment's build."""
    return Key(kinds.DEPLOYMENT.plural, name)


def run(name: str) -> Key:
    """The key of a Run."""
    return Key(kinds.RUN.plural, name)


def admission(name: str) -> Key:
    """The key of a Project's queue of Runs."""
    return Key(ADMISSION, name)


def source(name: str) -> Key:
    """The key of a Project's git repository."""
    return Key(SOURCE, name)


def github(name: str) -> Key:
    """The key of what GitHub knows of a Deployment."""
    return Key(GITHUB, name)


def waiting_runs(known: Known, *, project: str | None = None, deployment: str | None = None) -> Iterator[Key]:
    """The Runs that have no pod yet and wait for that Project or Deployment."""
    for raw in known.all(kinds.RUN):
        view = Run(raw)
        if not view.ended and not view.pod and (view.project == project or view.deployment == deployment):
            yield run(view.name)


def deployments_of(known: Known, project: str) -> Iterator[Deployment]:
    """A project's Deployments."""
    views = map(Deployment, known.all(kinds.DEPLOYMENT))
    return (view for view in views if view.project == project)


def unbuilt(known: Known, project: str) -> Iterator[Key]:
    """The Deployments of a project that are not at their end; some may wait for the Project itself."""
    for view in deployments_of(known, project):
        if not view.built and not view.failed:
            yield deployment(view.name)


def keys_of(kind: Kind, obj: Mapping[str, Any], known: Known, gone: bool = False) -> Iterator[Key]:
    """What to look at after `obj` appeared, changed or (`gone`) went away."""
    if kind == kinds.RUN:
        yield from _of_run(Run(obj), known)
    elif kind == kinds.POD:
        yield from _of_pod(Pod(obj), gone)
    elif kind == kinds.DEPLOYMENT:
        build = Deployment(obj)
        yield deployment(build.name)
        yield project(build.project)
        owner = known.get(kinds.PROJECT, build.project)
        if owner is not None and "github" in Project(owner).spec:
            yield github(build.name)
        yield from waiting_runs(known, deployment=build.name)
    elif kind == kinds.PROJECT:
        view = Project(obj)
        yield project(view.name)
        yield source(view.name)
        yield from unbuilt(known, view.name)
        yield from waiting_runs(known, project=view.name)
        if "github" in view.spec:
            yield from (github(build.name) for build in deployments_of(known, view.name))


def _of_run(view: Run, known: Known) -> Iterator[Key]:
    yield run(view.name)
    if (view.ended or view.result is not None) and view.project:
        yield admission(view.project)


def _of_pod(pod: Pod, gone: bool) -> Iterator[Key]:
    if names.LABEL_RUN in pod.labels:
        yield run(pod.labels[names.LABEL_RUN])
        # Nothing but the pod may tell of its place: its Run may be gone as well.
        if (gone or pod.finished or pod.deleting) and names.LABEL_PROJECT in pod.labels:
            yield admission(pod.labels[names.LABEL_PROJECT])
    elif pod.labels.get(names.LABEL_COMPONENT) == COMPONENT_PRUNE and names.LABEL_PROJECT in pod.labels:
        yield project(pod.labels[names.LABEL_PROJECT])
    elif names.LABEL_DEPLOYMENT in pod.labels:
        yield deployment(pod.labels[names.LABEL_DEPLOYMENT])
