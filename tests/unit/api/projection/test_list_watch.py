"""A full list is applied even if one of its objects is malformed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.exc import StatementError

from api.projection.list_watch import Projection, apply_list, list_and_watch
from api.store.errors import StoreUnavailable
from crds.kinds import RUN
from kube.client import Listing, WatchEvent


def item(name: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"}
    return {"metadata": {**metadata, "creationTimestamp": "2026-11-21T10:00:00Z"}}


async def apply_three_objects(error: Exception) -> list[str]:
    """Apply three objects, the second of which raises `error`; return the applied names."""
    applied: list[str] = []

    async def apply(manifest: dict[str, Any]) -> None:
        if manifest["metadata"]["name"] == "run-b":
            raise error
        applied.append(manifest["metadata"]["name"])

    async def delete(name: str, uid: str) -> None:
        raise AssertionError(name)

    async def indexed() -> dict[str, tuple[str, int]]:
        return {}

    listing = Listing([item("run-a"), item("run-b"), item("run-c")], "9")
    await apply_list(Projection(RUN, apply, delete, indexed), listing)
    return applied


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), OverflowError("x"), RecursionError("x"), StatementError("x", None, None, Exception())],
)
async def test_malformed_object_does_not_block_others(error: Exception) -> None:
    assert await apply_three_objects(error) == ["run-a", "run-c"]


async def test_store_error_is_raised() -> None:
    with pytest.raises(StoreUnavailable):
        await apply_three_objects(StoreUnavailable("the disk is away"))


class Cluster:
    """A kube-apiserver whose watch sends what is newer than its start, then waits."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items, self.list_count, self.watched_from = items, 0, list[str]()

    async def list(self, _kind: object, labels: str) -> Listing:
        self.list_count += 1
        return Listing([], "10")

    async def watch(self, _kind: object, version: str, labels: str) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(version)
        for item in self.items:
            if int(item["metadata"]["resourceVersion"]) > int(version):
                yield WatchEvent("ADDED", item)
        await asyncio.Event().wait()


async def test_watch_resumes_where_the_store_was_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.projection.list_watch.random.random", lambda: -0.5)
    failures, applied = [StoreUnavailable("the index is busy")] * 2, asyncio.Event()

    async def apply(manifest: dict[str, Any]) -> None:
        if manifest["metadata"]["name"] == "run-b":
            if failures:
                raise failures.pop()
            applied.set()

    async def indexed() -> dict[str, tuple[str, int]]:
        return {}

    async def delete(name: str, uid: str) -> None:
        raise AssertionError(name)

    newer = [item("run-a"), item("run-b")]
    for number, manifest in enumerate(newer, 11):
        manifest["metadata"]["resourceVersion"] = str(number)
    cluster: Any = Cluster(*newer)
    watching = asyncio.create_task(
        list_and_watch(cluster, Projection(RUN, apply, delete, indexed), lambda: None)
    )
    await asyncio.wait_for(applied.wait(), 60)
    watching.cancel()
    assert (cluster.list_count, cluster.watched_from) == (1, ["10", "11", "11"])
