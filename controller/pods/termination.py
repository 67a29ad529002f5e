"""Messages of the end of containers and pods. Pure. Called by what reads the end of a pod."""

import json
from collections.abc import Mapping
from typing import Any


def termination_message(terminated: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON object that a container left as its message; {} if it is missing or unreadable."""
    try:
        message = json.loads(str(terminated.get("message") or ""))
    except (ValueError, RecursionError):  # a crew, or code in a build, may have written anything
        return {}
    return message if isinstance(message, dict) else {}


def exceeded_disk_limit(message: str) -> bool:
    """Return whether the kubelet's message of an eviction says that the pod exceeded its own disk limit.

    A node without disk space evicts pods that are within their limits, too.
    """
    return "ephemeral" in message.lower() and "low on resource" not in message
