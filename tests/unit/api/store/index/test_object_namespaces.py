"""Objects of several namespaces in one index: names are unique, and the older project has one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.store.index.claims.claims import ClaimRequest
from api.store.index.runs import hide
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from crds.objects import Deployment, Project, Run
from tests.unit.api.store import builders

TEAM = "team-a"


def moved(view: Any, namespace: str = TEAM, **metadata: Any) -> Any:
    """Return an object as it is in another namespace."""
    raw = {**view.raw, "metadata": {**view.raw["metadata"], "namespace": namespace, **metadata}}
    return type(view)(raw)


def project_of_team(uid: str = "project-2", created: str = "2026-11-21T10:00:05Z", **more: Any) -> Project:
    return moved(builders.project(uid=uid, **more), creationTimestamp=created)


def deployment_of_team(name: str = "dep-b", owner: str | None = "project-2") -> Deployment:
    return moved(builders.deployment(name, owner=owner))


def run_of_team(name: str, uid: str = "run-2", owner: str = "project-2", phase: str = "Pending") -> Run:
    return moved(
        builders.run(name, phase, uid=uid, spec={"project": "demo", "deployment": "dep-b"}),
        ownerReferences=builders.owned(owner),
    )


async def shown(store: Store) -> tuple[str | None, str | None]:
    row = await store.projects.get("demo")
    return (None, None) if row is None else (row.uid, row.object_namespace)


async def test_an_object_of_the_own_namespace_has_no_place(store: Store) -> None:
    await store.projects.observe(moved(builders.project(), store.namespace))
    await store.deployments.observe(moved(builders.deployment(), store.namespace))
    run = await builders.create_run(store)
    deployment, row = await store.deployments.get("dep-a"), await store.runs.get(run)
    assert await shown(store) == ("project-1", None)
    assert deployment is not None and deployment.object_namespace is None
    assert row is not None and row.object_namespace is None


async def test_all_of_a_project_is_in_its_namespace(store: Store) -> None:
    await store.projects.observe(project_of_team(active="dep-b"))
    await store.deployments.observe(deployment_of_team())
    name, accepted = await store.runs.create(RunRequest("demo", "dep-b", {}), builders.NOW, None)
    assert accepted is not None and accepted.row.object_namespace == TEAM
    await store.run_writer.observe(run_of_team(name), builders.NOW)
    request = ClaimRequest("run-2", "pod", "nonce")
    await store.claims.grant(name, request, {"deployment_id": "dep_b"}, builders.later(1))
    claim = await store.claims.get(name)
    assert claim is not None and claim.object_namespace == TEAM
    deployment = await store.deployments.get("dep-b")
    assert deployment is not None and (deployment.status, deployment.object_namespace) == ("active", TEAM)
    assert await store.projects.places() == {"demo": TEAM}


async def test_each_namespace_is_compared_with_its_own_list(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    await store.projects.observe(moved(builders.project("other", "project-2")))
    await store.deployments.observe(moved(builders.deployment("dep-b", owner="project-2", project="other")))
    await store.run_writer.observe(
        moved(builders.run("run-b", uid="run-2", spec={"project": "other"})), builders.NOW
    )
    for place, found in ((None, ("demo", "dep-a", run)), (TEAM, ("other", "dep-b", "run-b"))):
        assert [*await store.projects.resource_versions(place)] == [found[0]]
        assert [*await store.deployments.resource_versions(place)] == [found[1]]
        assert [*await store.run_writer.present(place)] == [found[2]]
        assert [*await store.run_writer.live(place)] == [found[2]]


async def test_a_younger_project_of_the_name_is_not_shown_nor_anything_of_it(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    await store.projects.observe(project_of_team(active="dep-b"))
    await store.deployments.observe(deployment_of_team())
    await store.deployments.observe(deployment_of_team("dep-c", owner=None))
    await store.run_writer.observe(run_of_team("run-b"), builders.NOW)
    assert await shown(store) == ("project-1", None)
    assert [row.name for row in (await store.deployments.page("demo", 0, 9)).items] == ["dep-a"]
    assert await store.deployments.get("dep-b") is None and await store.deployments.get("dep-c") is None
    assert [row.name for row in (await store.runs.page(0, 9)).items] == [run]
    assert await store.runs.get("run-b") is None


async def test_the_younger_project_is_shown_once_the_older_one_is_deleted(store: Store) -> None:
    await builders.add_demo_project(store)
    await store.projects.observe(project_of_team())
    await store.projects.remove("demo", "project-1", builders.later(1))
    await store.projects.observe(project_of_team())
    assert await shown(store) == ("project-2", TEAM)


async def test_an_older_project_that_is_seen_later_takes_the_name(store: Store) -> None:
    await store.projects.observe(project_of_team(active="dep-b"))
    await store.deployments.observe(deployment_of_team())
    name, _ = await store.runs.create(RunRequest("demo", "dep-b", {}), builders.NOW, None)
    await store.run_writer.observe(run_of_team(name), builders.NOW)
    older = builders.project()
    older.raw["metadata"]["resourceVersion"] = "3"
    await store.projects.observe(older)
    assert await shown(store) == ("project-1", None)
    assert (await store.runs.page(0, 9)).total == 0 and await store.runs.get(name) is None
    assert await store.deployments.get("dep-b") is None
    await store.projects.observe(project_of_team())
    assert await shown(store) == ("project-1", None)
    await store.projects.remove("demo", "project-1", builders.later(1))
    await store.projects.observe(project_of_team())
    assert await shown(store) == ("project-2", TEAM)


async def test_a_project_that_the_controller_refuses_is_not_shown(store: Store) -> None:
    refused = project_of_team()
    condition = {"type": "Ready", "status": "False", "reason": "NameTaken", "message": "…"}
    refused.raw["status"]["conditions"] = [condition]
    await store.projects.observe(refused)
    assert await shown(store) == (None, None)


async def test_runs_that_named_a_project_before_it_existed_elsewhere_are_hidden(store: Store) -> None:
    await store.run_writer.observe(run_of_team("run-b"), builders.NOW)
    assert (await store.runs.page(0, 9, project="demo")).total == 1
    await builders.add_demo_project(store)
    assert (await store.runs.page(0, 9, project="demo")).total == 0
    assert await store.runs.get("run-b") is None


async def test_any_number_of_runs_elsewhere_is_hidden_in_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hide, "RUNS_PER_TRANSACTION", 2)
    for number in range(5):
        await store.run_writer.observe(run_of_team(f"run-{number}", f"uid-{number}"), builders.NOW)
    sizes = []
    batch = hide.hide_batch

    async def observed(*arguments: Any) -> int:
        sizes.append(await batch(*arguments))
        return sizes[-1]

    monkeypatch.setattr(hide, "hide_batch", observed)
    await builders.add_demo_project(store)
    assert sizes == [2, 2, 1, 0]
    assert (await store.runs.page(0, 9, project="demo")).total == 0


async def test_an_object_of_another_namespace_replaces_none_of_its_name(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    accepted, _ = await store.runs.create(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    await store.projects.observe(moved(builders.project("other", "project-2")))
    intruder = moved(builders.deployment("dep-a", owner="project-2", project="other"), uid="uid-2")
    await store.deployments.observe(intruder)
    for name in (run, accepted):
        await store.run_writer.observe(run_of_team(name, phase="Succeeded"), builders.NOW)
    deployment, row = await store.deployments.get("dep-a"), await store.runs.get(run)
    assert deployment is not None and (deployment.project, deployment.uid) == ("demo", "uid-of-dep-a")
    assert row is not None and (row.status, row.uid) == ("pending", "run-uid")
    unlinked = await store.runs.get(accepted)
    assert unlinked is not None and unlinked.uid is None


async def test_a_deleted_project_takes_nothing_of_another_namespace_along(store: Store) -> None:
    await builders.add_demo_project(store)
    await store.deployments.observe(deployment_of_team("dep-c", owner=None))
    await store.run_writer.observe(run_of_team("run-b"), builders.NOW)
    await store.projects.remove("demo", "project-1", builders.later(1))
    await store.projects.observe(project_of_team())
    assert await store.deployments.get("dep-c") is not None
    assert await store.deployments.resource_versions(TEAM) != {}
    assert [*await store.run_writer.present(TEAM)] == ["run-b"]


async def test_a_deleted_namesake_leaves_the_project_that_holds_the_name(store: Store) -> None:
    await store.projects.observe(builders.project())
    # Created by kubectl; the controller has not set their owner yet.
    await store.deployments.observe(builders.deployment("dep-a", owner=None))
    spec = {"project": "demo", "deployment": "dep-a"}
    await store.run_writer.observe(builders.run("run-a", uid="run-1", spec=spec), builders.NOW)
    upload = await store.uploads.create("demo", 4, None, builders.NOW, builders.later(60))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"code"

    await store.receive(upload.id, chunks(), builders.NOW)
    await store.projects.observe(project_of_team())
    await store.deployments.observe(deployment_of_team())
    await store.projects.remove("demo", "project-2", builders.later(1))
    kept = await store.uploads.get(upload.id)
    assert kept is not None and kept.stored_at == builders.NOW
    assert await store.deployments.get("dep-a") is not None
    assert await store.runs.get("run-a") is not None
    assert await store.deployments.get("dep-b") is None
    # The end of the first one still takes all of it.
    await store.projects.remove("demo", "project-1", builders.later(2))
    assert (await store.deployments.get("dep-a"), await store.runs.get("run-a")) == (None, None)
