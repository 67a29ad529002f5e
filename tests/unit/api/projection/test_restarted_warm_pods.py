"""Pods that wait for a run: the watch of them is started again after an unexpected error."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from api.internal.warm.pods import WarmPods
from crds import names
from crds.kinds import RUN
from kube.client import Listing, WatchEvent

POD = {
    "metadata": {
        "name": "warm-1",
        "uid": "uid-warm-1",
        "resourceVersion": "5",
        "creationTimestamp": "2026-12-01T10:00:00Z",
        "labels": {names.LABEL_RUN: "run-1"},
        "ownerReferences": [
            {"apiVersion": RUN.api_version, "kind": RUN.name, "name": "run-1", "uid": "uid-1"}
        ],
    },
    "spec": {"activeDeadlineSeconds": 60},
    "status": {"startTime": "2026-12-01T10:00:00Z"},
}


class BrokenOnceKube:
    """A client whose first list raises an error that nothing expects."""

    def __init__(self) -> None:
        self.list_count = 0

    async def list(self, _kind: object, labels: str) -> Listing:
        self.list_count += 1
        if self.list_count == 1:
            raise ZeroDivisionError
        return Listing([POD], "9")

    async def watch(self, _kind: object, _version: str, labels: str) -> AsyncIterator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent("BOOKMARK", POD)


async def test_watch_is_started_again_after_an_unexpected_error() -> None:
    kube: Any = BrokenOnceKube()
    pods = WarmPods(kube)
    running = pods.run(None)  # type: ignore[arg-type]
    await anext(running)
    found = await pods.bound_run("warm-1", "uid-warm-1", 60)
    assert found is not None and (found.run, found.run_uid) == ("run-1", "uid-1")
    assert await anext(running, None) is None, "the watch ends with the application"
