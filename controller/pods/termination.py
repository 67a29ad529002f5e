"""Messages of the end of containers and pods. Pure. Called by what reads the end of a pod."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crds.objects import Pod
from crds.times import parse_time


def ended_at(pod: Pod) -> datetime | None:
    """Return when the last container of a pod that has ended did so."""
    times = [((c.get("state") or {}).get("terminated") or {}).get("finishedAt") for c in pod.containers]
    return max((parse_time(text) for text in times if text), default=None)


def termination_message(terminated: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON object that a container left as its message; {} if it is missing or unreadable.

    The kube-apiserver cannot store a number that is not finite.
    """
    text = str(terminated.get("message") or "")
    try:
        message = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_integer)
    except (ValueError, RecursionError):  # a crew, or code in a build, may have written anything
        return {}
    return message if isinstance(message, dict) else {}


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not finite")
    return value


def _integer(text: str) -> int:
    _finite(text)
    return int(text)


def exceeded_disk_limit(message: str) -> bool:
    """Return whether the kubelet's message of an eviction says that the pod exceeded its own disk limit.

    A node without disk space evicts pods that are within their limits, too.
    """
    return "ephemeral" in message.lower() and "low on resource" not in message
