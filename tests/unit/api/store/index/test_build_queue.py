"""Tests of the position in the build queue, computed on read."""

import pytest

from api.store.store import Store
from crds.objects import Deployment
from tests.unit.api.store import builders


def waiting_deployment(name: str, reason: str = "Queued", phase: str = "Pending") -> Deployment:
    ready = {"type": "Ready", "status": "Unknown", "reason": reason, "message": "m"}
    return builders.deployment(name, phase, conditions=[ready, {**ready, "type": "Built"}])


async def position(store: Store, name: str) -> int | None:
    row = await store.deployments.get(name)
    assert row is not None
    return await store.deployments.queue_position(row)


async def test_position_moves_without_writes(store: Store) -> None:
    await store.projects.observe(builders.project())
    names = [f"dep-{letter}" for letter in "dacb"]
    for name in names:
        await store.deployments.observe(waiting_deployment(name))
    # All have the same second: the name decides.
    assert [await position(store, name) for name in sorted(names)] == [1, 2, 3, 4]
    await store.deployments.observe(waiting_deployment("dep-b", "Assembling", "Building"))
    assert [await position(store, name) for name in sorted(names)] == [1, None, 2, 3]


@pytest.mark.parametrize("reason", ["ProjectNotFound", "SameSourceBuilding", "PodRefused"])
async def test_other_reasons_are_outside_the_queue(store: Store, reason: str) -> None:
    await store.projects.observe(builders.project())
    await store.deployments.observe(waiting_deployment("dep-a", reason))
    await store.deployments.observe(waiting_deployment("dep-b"))
    assert (await position(store, "dep-a"), await position(store, "dep-b")) == (None, 1)
