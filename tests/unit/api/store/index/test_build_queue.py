"""Where a Deployment stands in the queue of builds is counted when it is read."""

import pytest

from api.store.store import Store
from crds.objects import Deployment
from tests.unit.api.store import builders


def waits(name: str, reason: str = "Queued", phase: str = "Pending") -> Deployment:
    ready = {"type": "Ready", "status": "ClaimUnknown", "reason": reason, "message": "m"}
    return builders.deployment(name, phase, conditions=[ready, {**ready, "type": "Built"}])


async def position(store: Store, name: str) -> int | None:
    row = await store.deployments.get(name)
    assert row is not None
    return await store.deployments.queue_position(row)


async def test_the_position_follows_the_line_without_a_write_to_those_in_it(store: Store) -> None:
    await store.projects.observe(builders.project())
    names = [f"dep-{letter}" for letter in "dacb"]
    for name in names:
        await store.deployments.observe(waits(name))
    # All of one second, so that the name decides.
    assert [await position(store, name) for name in sorted(names)] == [1, 2, 3, 4]
    await store.deployments.observe(waits("dep-b", "Assembling", "Building"))
    assert [await position(store, name) for name in sorted(names)] == [1, None, 2, 3]


@pytest.mark.parametrize("reason", ["ProjectNotFound", "SameSourceBuilding", "PodRefused"])
async def test_who_waits_for_something_else_stands_in_nobodys_way(store: Store, reason: str) -> None:
    await store.projects.observe(builders.project())
    await store.deployments.observe(waits("dep-a", reason))
    await store.deployments.observe(waits("dep-b"))
    assert (await position(store, "dep-a"), await position(store, "dep-b")) == (None, 1)
