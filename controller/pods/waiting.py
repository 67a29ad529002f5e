"""Pod that is started before its work and waits for it. Pure. Shared by waiting pods of runs and of builds.

It belongs to its Project. A label has the fingerprint of everything it is made from; a pod with another
fingerprint gets no work.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from controller.config import ControllerConfig
from crds import names
from crds.objects import Pod
from crds.times import parse_time

FINGERPRINT_LENGTH = 20
MAX_PROJECT_LETTERS = 40
"""Of a project's name in a pod's name, which has at most 63 letters."""
TOKEN_SLACK_SECONDS = 60
LOOK_SECONDS = 30.0
"""How often Secrets and the Deployment are looked at without an event."""
REPLACE_SECONDS = 0.1


def pod_name(project: str, suffix: str) -> str:
    """Return the name of a waiting pod; `suffix` is random, so no name is used twice."""
    return f"{names.WARM_PREFIX}{project[:MAX_PROJECT_LETTERS].rstrip('-')}-{suffix}"


def fingerprint(source: Mapping[str, Any]) -> str:
    """Return the label of pods made from `source`, which is JSON."""
    digest = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    return digest[:FINGERPRINT_LENGTH]


def secret_version(secret: Mapping[str, Any] | None) -> list[str | None]:
    """Return uid and resourceVersion of a Secret, for a fingerprint."""
    metadata = (secret or {}).get("metadata") or {}
    return [metadata.get("uid"), metadata.get("resourceVersion")]


def token_expiry(config: ControllerConfig, now: float) -> int:
    """Return when the token of a pod created at `now` expires, both in epoch seconds."""
    return int(now) + config.timing.unschedulable + config.limits.warm_seconds + TOKEN_SLACK_SECONDS


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods sorted by age; the oldest has most probably imported everything."""
    return sorted(pods, key=lambda pod: (pod.created, pod.name))


def seconds_to_next_look(size: int, can_start: bool) -> float | None:
    """Return when to look again at a pool that starts no pod now; None if no pod should wait."""
    if can_start:
        return REPLACE_SECONDS
    return LOOK_SECONDS if size else None


def is_young(pod: Pod, now: datetime, max_age_seconds: float) -> bool:
    """Return whether a pod may still get work."""
    return (now - pod.created).total_seconds() < max_age_seconds


def executes(pod: Pod, container: str) -> bool:
    """Return whether a container of a pod is running and the pod is not being deleted."""
    if pod.deleting or pod.phase != "Running":
        return False
    states = (c.get("state") or {} for c in pod.containers if c.get("name") == container)
    return any("running" in state for state in states)


def deadline_seconds(pod: Pod, seconds: int, now: datetime) -> int:
    """Return the activeDeadlineSeconds with which a pod that gets work has `seconds` from `now`.

    The kubelet counts from the pod's start, so the time that it waited is added.
    """
    started = pod.status.get("startTime")
    waited = (now - (parse_time(str(started)) if started else pod.created)).total_seconds()
    return seconds + max(0, math.ceil(waited))
