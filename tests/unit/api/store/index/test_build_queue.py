"""Tests of the position in the build queue, computed on read."""

import pytest

from api.store.store import Store
from crds.objects import Deployment, Project
from tests.unit.api.store import builders


def waiting_deployment(
    name: str, reason: str = "Queued", phase: str = "Pending", project: str = "demo"
) -> Deployment:
    ready = {"type": "Ready", "status": "Unknown", "reason": reason, "message": "m"}
    conditions = [ready, {**ready, "type": "Built"}]
    return builders.deployment(name, phase, project=project, conditions=conditions)


async def position(store: Store, name: str) -> int | None:
    row = await store.deployments.get(name)
    assert row is not None
    return await store.build_queue.position(row)


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


async def test_each_namespace_has_a_queue_of_its_own(store: Store) -> None:
    """The controller has build slots for each team, so builds of others do not delay one."""
    for name, namespace in (("demo", store.namespace), ("other", "team-a")):
        project = builders.project(name).raw
        await store.projects.observe(
            Project({**project, "metadata": {**project["metadata"], "namespace": namespace}})
        )
        for deployment in (f"dep-{name}-1", f"dep-{name}-2"):
            raw = waiting_deployment(deployment, project=name).raw
            await store.deployments.observe(
                Deployment({**raw, "metadata": {**raw["metadata"], "namespace": namespace}})
            )
    expected = {"dep-demo-1": 1, "dep-demo-2": 2, "dep-other-1": 1, "dep-other-2": 2}
    assert {name: await position(store, name) for name in expected} == expected


async def test_position_follows_the_shares_of_the_projects(store: Store) -> None:
    for name in ("demo", "other", "third"):
        await store.projects.observe(builders.project(name))
    for name, project in (("dep-a", "demo"), ("dep-b", "demo"), ("dep-c", "other"), ("dep-d", "third")):
        await store.deployments.observe(waiting_deployment(name, project=project))
    built = {"type": "Built", "status": "False", "reason": "BuildFailed", "message": "m"}
    ready = {**built, "type": "Ready"}
    for name, project, ended in (
        ("dep-0", "demo", "2026-01-01T00:00:05Z"),
        ("dep-1", "other", "2026-01-01T00:00:01Z"),
    ):
        await store.deployments.observe(waiting_deployment(name, "Assembling", "Building", project))
        conditions = [ready, {**built, "lastTransitionTime": ended}]
        await store.deployments.observe(
            builders.deployment(name, "Failed", project=project, conditions=conditions)
        )
    # `third` never built; the last build of `other` ended before that of `demo`.
    expected = {"dep-d": 1, "dep-c": 2, "dep-a": 3, "dep-b": 4}
    assert {name: await position(store, name) for name in expected} == expected
    await store.deployments.observe(waiting_deployment("dep-2", "Assembling", "Building", "third"))
    expected = {"dep-c": 1, "dep-a": 2, "dep-d": 3, "dep-b": 4}
    assert {name: await position(store, name) for name in expected} == expected
