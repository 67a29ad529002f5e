"""Decision about the waiting pods of a Project. Pure. Called by `controller.run.warm.reconcile`.

It changes no pods with a run. A pod is deleted only if it is unchanged since it was read, so a pod that got
a run meanwhile stays.

A pod that ends while it waits failed, mostly in its import: the next one follows after a back-off that
doubles, and until one has stayed up, one is started at a time. Runs start cold meanwhile, and report what is
wrong.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.backoff import backoff_seconds
from controller.config import ControllerConfig
from controller.pods import waiting
from controller.pods.termination import termination_message
from controller.run.outcome import CONTAINER, of_pod_reason
from controller.run.warm.pod import WarmTemplate, build
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import kinds, names
from crds.objects import Pod
from crds.reasons import RunReason
from crds.times import format_second, parse_time

FIRST_RETRY_SECONDS = 10.0
MAX_RETRY_SECONDS = 1800.0
PROVEN_SECONDS = 30.0
"""A pod that has been running this long has not failed."""
MAX_MESSAGE_LENGTH = 1000
FAILED_EVENT = "WarmPodFailed"


@dataclass(frozen=True)
class WarmPool:
    """Waiting pods of a Project, unbound ones only. `template` is None if none can start.

    `size` is how many should wait; `failure` is `Project.status.warm`; `bound` are pods that waited and got a
    run, needed only after a failure.
    """

    size: int
    template: WarmTemplate | None
    pods: Sequence[Pod]
    failure: dict[str, Any] | None = None
    bound: Sequence[Pod] = ()


def decide(pool: WarmPool, new_names: Sequence[str], now: datetime, config: ControllerConfig) -> Decision:
    """Return the Decision that keeps `size` pods waiting; new ones get the first of `new_names`."""
    fingerprint = pool.template.fingerprint if pool.template else ""
    failure = pool.failure if pool.failure and pool.failure["template"] == fingerprint else None
    if failure is not None and _seconds_to_retry(failure, now) > MAX_RETRY_SECONDS:
        # The clock was ahead.
        failure = {**failure, "retryTime": format_second(now)}
    ours = [pod for pod in pool.pods if not pod.deleting]
    usable = [pod for pod in ours if not pod.finished and _is_usable(pod, fingerprint, now, config)]
    kept = waiting.oldest_first(usable)[: pool.size]
    new_failures = [pod for pod in ours if _has_failed(pod, fingerprint, failure)]
    events: tuple[ObjectEvent, ...] = ()
    if new_failures:
        last = new_failures[-1]
        failure = _failure(failure, fingerprint, last.uid, _message(last), now)
        events = (ObjectEvent(FAILED_EVENT, failure["message"], True),)
    elif failure is not None:
        taken = [pod for pod in pool.bound if pod.labels.get(names.LABEL_WARM) == fingerprint]
        if any(_is_proof(pod, failure, now) for pod in (*kept, *taken)):
            failure = None
    missing = pool.size - len(kept)
    if failure is not None:
        missing = min(missing, _next_attempt(kept, failure, now))
    logged = failure["pod"] if failure is not None and not _is_due(failure, now) else None
    delete = tuple(_delete(pod) for pod in ours if pod not in kept and pod.uid != logged)
    if delete or pool.template is None:
        # First the old ones: a quota may have no room for both.
        after = waiting.seconds_to_next_look(pool.size, pool.template is not None)
        return Decision(delete=delete, status={"warm": failure}, events=events, requeue_after=after)
    return Decision(
        create=tuple(
            Create(kinds.POD, build(pool.template, name, config, now.timestamp()))
            for name in new_names[:missing]
        ),
        status={"warm": failure},
        events=events,
        requeue_after=_next_look(kept, failure, now, config),
    )


def refused(pool: WarmPool, message: str, now: datetime) -> Decision:
    """Return the Decision after the apiserver refused to create a waiting pod, mostly by a quota."""
    fingerprint = pool.template.fingerprint if pool.template else ""
    before = pool.failure if pool.failure and pool.failure["template"] == fingerprint else None
    failure = _failure(
        before, fingerprint, "", f"The apiserver refused a pod that waits for a run: {message}", now
    )
    event = ObjectEvent(FAILED_EVENT, failure["message"], True)
    wait = max(0.1, _seconds_to_retry(failure, now))
    return Decision(status={"warm": failure}, events=(event,), requeue_after=wait)


def _seconds_to_retry(failure: Mapping[str, Any], now: datetime) -> float:
    return (parse_time(failure["retryTime"]) - now).total_seconds()


def _is_due(failure: Mapping[str, Any], now: datetime) -> bool:
    return _seconds_to_retry(failure, now) <= 0


def _next_attempt(kept: Sequence[Pod], failure: Mapping[str, Any], now: datetime) -> int:
    """Return how many pods to start after a failure: one in its time, if none was started since."""
    started = any(pod.created >= parse_time(failure["retryTime"]) for pod in kept)
    return int(_is_due(failure, now) and not started)


def _is_proof(pod: Pod, failure: Mapping[str, Any], now: datetime) -> bool:
    """Return whether a pod started after the failure has stayed up."""
    return pod.created >= parse_time(failure["retryTime"]) and _running_seconds(pod, now) >= PROVEN_SECONDS


def _is_usable(pod: Pod, fingerprint: str, now: datetime, config: ControllerConfig) -> bool:
    is_young = waiting.is_young(pod, now, config.limits.warm_seconds)
    return is_young and bool(fingerprint) and pod.labels.get(names.LABEL_WARM) == fingerprint


def _has_failed(pod: Pod, fingerprint: str, failure: dict[str, Any] | None) -> bool:
    """Return whether this pod ended without a run and without a disruption, and is not counted yet.

    An eviction for exceeding its own storage is not a disruption: the next one would exceed it too.
    """
    if not pod.finished or pod.labels.get(names.LABEL_WARM) != fingerprint:
        return False
    outcome = of_pod_reason(pod)
    has_failed = outcome is None or outcome.reason == RunReason.STORAGE_EXCEEDED
    return has_failed and (failure is None or failure["pod"] != pod.uid)


def _failure(
    before: Mapping[str, Any] | None, fingerprint: str, pod: str, message: str, now: datetime
) -> dict[str, Any]:
    failures = (before["failures"] if before else 0) + 1
    seconds = backoff_seconds(FIRST_RETRY_SECONDS, failures, MAX_RETRY_SECONDS)
    printable = "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in message)
    return {
        "template": fingerprint,
        "failures": failures,
        "pod": pod,
        "retryTime": format_second(now + timedelta(seconds=math.ceil(seconds))),
        "message": printable[:MAX_MESSAGE_LENGTH],
    }


def _message(pod: Pod) -> str:
    terminated = pod.terminated(CONTAINER) or {}
    reason = termination_message(terminated).get("message") or terminated.get("reason")
    reason = reason or pod.status.get("message") or pod.status.get("reason") or "no reason given"
    return f"Pod {pod.name} failed while it waited for a run: {reason}"


def _running_seconds(pod: Pod, now: datetime) -> float:
    state = next((c.get("state") or {} for c in pod.containers if c.get("name") == CONTAINER), {})
    started = (state.get("running") or {}).get("startedAt")
    return (now - parse_time(str(started))).total_seconds() if started else 0.0


def _delete(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, resource_version=pod.resource_version)


def _next_look(
    kept: Sequence[Pod],
    failure: Mapping[str, Any] | None,
    now: datetime,
    config: ControllerConfig,
) -> float | None:
    times = [waiting.LOOK_SECONDS]
    if failure is not None and not _is_due(failure, now):
        times.append(_seconds_to_retry(failure, now))
    times += [config.limits.warm_seconds - (now - pod.created).total_seconds() for pod in kept]
    return max(0.1, min(times))
