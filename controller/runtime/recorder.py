"""Recorder of Kubernetes Events; writes them in the background, so no reconcile waits.

Best effort by design: the queue is bounded; events that do not fit or are rejected are dropped
and counted. Called by `controller.runtime.apply` after the status is written.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controller.observability.metrics import ControllerMetrics
from controller.runtime.decision import ObjectEvent
from crds import kinds
from crds.kinds import Kind
from crds.times import format_second
from kube import errors
from kube.client import KubeClient

COMPONENT = "crewyard-controller"
MAX_QUEUED_EVENTS = 1000
MAX_MESSAGE_LENGTH = 1000


def event_body(
    kind: Kind, obj: Mapping[str, Any], note: ObjectEvent, now: datetime, suffix: str
) -> dict[str, Any]:
    """Return the Event object of a note; `suffix` makes its name unique."""
    metadata = obj["metadata"]
    moment = format_second(now)
    return {
        "metadata": {"name": f"{metadata['name']}.{suffix}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
        "type": "Warning" if note.warning else "Normal",
        "reason": note.reason,
        "message": note.message[:MAX_MESSAGE_LENGTH],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


class Recorder:
    """Writes Events from a bounded queue."""

    def __init__(self, kube: KubeClient, metrics: ControllerMetrics) -> None:
        self._kube = kube
        self._metrics = metrics
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_QUEUED_EVENTS)

    def record(self, kind: Kind, obj: Mapping[str, Any], note: ObjectEvent, now: datetime) -> None:
        """Queue an Event, or drop it if the queue is full."""
        with contextlib.suppress(asyncio.QueueFull):
            self._queue.put_nowait(event_body(kind, obj, note, now, secrets.token_hex(8)))
            return
        self._metrics.events_dropped.inc()

    async def run(self) -> None:
        """Write queued Events until cancelled."""
        while True:
            body = await self._queue.get()
            try:
                await self._kube.create(kinds.EVENT, body)
            except errors.KubeError:
                self._metrics.events_dropped.inc()
