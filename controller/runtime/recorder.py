"""Kubernetes Events about our objects, written aside so that no reconcile waits for them.

Best effort by design: the queue is bounded, and what does not fit or is refused
is dropped and counted. Called by `controller.runtime.apply` after the status is written.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controller.observability.metrics import Metrics
from controller.runtime.decision import Note
from crds import kinds
from crds.kinds import Kind
from crds.times import format_second
from kube import errors
from kube.client import Kube

COMPONENT = "crewyard-controller"
CAPACITY = 1000
MAX_MESSAGE = 1000


def event(kind: Kind, obj: Mapping[str, Any], note: Note, now: datetime, suffix: str) -> dict[str, Any]:
    """The Event object of a note; `suffix` makes its name unique."""
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
        "message": note.message[:MAX_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


class Recorder:
    """Writes Events from a queue of at most 1000."""

    def __init__(self, kube: Kube, metrics: Metrics) -> None:
        self._kube = kube
        self._metrics = metrics
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(CAPACITY)

    def note(self, kind: Kind, obj: Mapping[str, Any], note: Note, now: datetime) -> None:
        """Queues an Event, or drops it where too many wait."""
        with contextlib.suppress(asyncio.QueueFull):
            self._queue.put_nowait(event(kind, obj, note, now, secrets.token_hex(8)))
            return
        self._metrics.events_dropped.inc()

    async def run(self) -> None:
        """Writes what is queued, until it is cancelled."""
        while True:
            body = await self._queue.get()
            try:
                await self._kube.create(kinds.EVENT, body)
            except errors.KubeError:
                self._metrics.events_dropped.inc()
