"""Decision about the nodes of a Project and the pods that pull its image there. Pure.

`Project.status.pullAhead` has the nodes that have run the project, and the activation that was handled last.
An activation is handled once, so that a node gets at most one pod for it; a rollback is another activation,
since a node may have removed the image. Called by `controller.pull_ahead.reconcile`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from controller.config import ControllerConfig
from controller.pull_ahead.pod import CONTAINER, DEADLINE_SECONDS, build, node_of
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import conditions, kinds, names
from crds.objects import Deployment, Pod, Project
from crds.times import parse_time

MAX_NODES = 10
RECENT_SECONDS = 600.0
"""An earlier activation is not handled: the setting was off, or no controller ran."""
UNSCHEDULED_SECONDS = 60.0
"""After this time without a place, the node has no room, or does not exist any more."""
RETRY_SECONDS = 10.0
"""Until the active Deployment is looked at again: its image may not be verified yet."""
FAILED_EVENT = "PullAheadFailed"
MAX_MESSAGE_LENGTH = 1000


@dataclass(frozen=True)
class ObservedNodes:
    """Observed state of a Project; `active` is its active Deployment if the image may be pulled.

    `run_pods` are pods of its runs, `pods` its pull pods.
    """

    project: Project
    active: Deployment | None
    run_pods: Sequence[Pod]
    pods: Sequence[Pod]


def is_new_node(project: Project, node: str) -> bool:
    """Return whether a node is to be added to those of a Project."""
    recorded = project.run_nodes
    return bool(node) and node not in recorded and len(recorded) < MAX_NODES


def is_recent(project: Project, now: datetime) -> bool:
    """Return whether the active Deployment was activated a short time ago."""
    activated = project.status.get("activatedAt")
    return bool(activated) and (now - parse_time(str(activated))).total_seconds() < RECENT_SECONDS


def is_due(project: Project, now: datetime, config: ControllerConfig) -> bool:
    """Return whether the last activation is to be handled."""
    handled = (project.status.get("pullAhead") or {}).get("activatedAt")
    is_known = bool(project.active) and bool(project.run_nodes)
    is_open = is_recent(project, now) and project.status.get("activatedAt") != handled
    return config.pull_ahead and is_known and is_open


def decide(observed: ObservedNodes, now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision about the nodes and the pull pods of a Project."""
    project, due = observed.project, is_due(observed.project, now, config)
    active = observed.active if due else None
    pods = [pod for pod in observed.pods if not pod.deleting]
    late = [pod for pod in pods if not pod.finished and _left(pod, now) <= 0]
    over = [pod for pod in pods if pod.finished or pod in late or not _is_active(pod, project)]
    lost = {node_of(pod) for pod in late if _scheduled(pod).get("reason") == "Unschedulable"}
    nodes = [node for node in _nodes(observed, active is not None) if node not in lost]
    create: tuple[Create, ...] = ()
    if active is not None:
        # A pod of a run has pulled it too, such as that of the smoke run.
        own = [pod for pod in (*observed.pods, *observed.run_pods) if _is_active(pod, project)]
        held = {node_of(pod) or pod.node for pod in own}
        create = tuple(
            Create(kinds.POD, build(project, active, node, config)) for node in nodes if node not in held
        )
    looks = [_left(pod, now) for pod in pods if pod not in over]
    looks += [UNSCHEDULED_SECONDS for _ in create[:1]]
    looks += [RETRY_SECONDS] if due and active is None else []
    return Decision(
        create=create,
        delete=tuple(Delete(kinds.POD, pod.name, pod.uid, events=_events(pod, project)) for pod in over),
        status=_status(project, nodes, active is not None),
        requeue_after=max(0.1, min(looks)) if looks else None,
    )


def refused(decision: Decision, message: str) -> Decision:
    """Return the rest of a Decision after the apiserver refused one of its pods, mostly by a quota."""
    text = f"The apiserver refused a pod that pulls the image ahead: {message}"
    event = ObjectEvent(FAILED_EVENT, text[:MAX_MESSAGE_LENGTH], True)
    return replace(decision, create=(), events=(event,))


def _nodes(observed: ObservedNodes, handles: bool) -> list[str]:
    """Return the nodes to record, newest first.

    A list that is full changes only at an activation: a project that runs on many nodes is not written to
    for each of its runs.
    """
    recorded = observed.project.run_nodes
    newest_first = sorted(observed.run_pods, key=lambda pod: pod.created, reverse=True)
    seen = [pod.node for pod in newest_first if pod.node]
    if not handles:
        seen = [node for node in seen if is_new_node(observed.project, node)]
    return list(dict.fromkeys([*seen, *recorded]))[:MAX_NODES]


def _status(project: Project, nodes: list[str], handles: bool) -> dict[str, Any] | None:
    recorded = project.run_nodes
    record: dict[str, Any] = {"nodes": nodes}
    if handles or (nodes and not recorded):
        # The first nodes: they have run what is active, or something else since then.
        record["activatedAt"] = project.status.get("activatedAt")
    return {"pullAhead": record} if nodes or recorded else None


def _is_active(pod: Pod, project: Project) -> bool:
    return pod.labels.get(names.LABEL_DEPLOYMENT) == project.active


def _scheduled(pod: Pod) -> Mapping[str, Any]:
    return conditions.find(pod.conditions, "PodScheduled") or {}


def _left(pod: Pod, now: datetime) -> float:
    """Return the seconds that a pull pod has left."""
    seconds = DEADLINE_SECONDS if _scheduled(pod).get("status") == "True" else UNSCHEDULED_SECONDS
    return seconds - (now - pod.created).total_seconds()


def _events(pod: Pod, project: Project) -> tuple[ObjectEvent, ...]:
    """Return the Event about a pod that is over and did not pull the image; none if it is not needed."""
    if pod.phase == "Succeeded" or not _is_active(pod, project):
        return ()
    message = f"The image of {project.active} was not pulled ahead to node {node_of(pod)}: {_problem(pod)}"
    return (ObjectEvent(FAILED_EVENT, message[:MAX_MESSAGE_LENGTH], True),)


def _problem(pod: Pod) -> str:
    if pod.finished:
        terminated = pod.terminated(CONTAINER) or {}
        reason = pod.status.get("message") or terminated.get("message") or terminated.get("reason")
        return str(reason or pod.status.get("reason") or "no reason given")
    scheduled = _scheduled(pod)
    if scheduled.get("status") != "True":
        reason = scheduled.get("message") or "no reason given"
        return f"no place for its pod in {UNSCHEDULED_SECONDS:.0f} s: {reason}"
    return f"its pod did not end in {DEADLINE_SECONDS} s"
