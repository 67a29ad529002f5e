"""Events become deliveries in the transaction of their cause; the table is bounded and fair."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.notifications.attempt import Attempt, decide
from api.store.accounting import account_batch
from api.store.errors import Missing
from api.store.index.notifications import deliveries as table
from api.store.index.notifications import outbox
from api.store.index.notifications.outbox import GIVE_UP_AFTER, ProjectEvent
from api.store.index.runs.input_requests import Question
from api.v1.projects import view
from crds.objects import Deployment, Project
from crds.times import format_second
from tests.unit.api.store import builders

ALL = [
    "run.succeeded",
    "run.failed",
    "run.canceled",
    "run.waiting",
    "deployment.active",
    "deployment.failed",
]


def now() -> datetime:
    return datetime.now(UTC)


def entry(name: str = "chat", events: list[str] = ALL) -> dict:
    return {
        "name": name,
        "url": "https://hooks.example.com/",
        "secretRef": {"name": "hook"},
        "events": events,
    }


async def add_project(store, *entries, name="demo", uid="project-1") -> None:
    await store.projects.observe(builders.project(name, uid, notifications=list(entries)))


async def events(store, uid="project-1") -> list[tuple[str, str, str]]:
    found = await store.deliveries.page(uid, now(), 0, 100)
    return [(row.type, row.object, row.notification) for row in reversed(found.items)]


async def end_run(store, phase: str, at: datetime) -> str:
    name = await builders.create_run(store)
    await store.run_writer.observe(builders.run(name, phase, completionTime=format_second(at)), at)
    return name


async def test_each_end_of_a_run_is_recorded_once(store):
    await add_project(store, entry(), entry("pager", ["run.failed"]))
    names = {phase: await end_run(store, phase, now()) for phase in ("Succeeded", "Failed", "Canceled")}
    for _ in range(2):
        await account_batch(store)
    assert sorted(await events(store)) == sorted(
        [
            ("run.succeeded", names["Succeeded"], "chat"),
            ("run.failed", names["Failed"], "chat"),
            ("run.failed", names["Failed"], "pager"),
            ("run.canceled", names["Canceled"], "chat"),
        ]
    )


async def test_ends_of_long_ago_and_of_another_project_are_not_sent(store):
    await add_project(store, entry())
    await end_run(store, "Failed", now() - GIVE_UP_AFTER - timedelta(minutes=1))
    await account_batch(store)
    assert await events(store) == []
    name = await builders.create_run(store)
    ended = builders.run(name, "Failed", completionTime=format_second(now()))
    ended.raw["metadata"]["ownerReferences"] = builders.owned("project-0")
    await store.run_writer.observe(ended, now())
    await account_batch(store)
    assert await events(store) == []


async def test_a_question_is_recorded_with_its_first_storage(store):
    await add_project(store, entry())
    run = await builders.claim_run(store)
    for _ in range(2):
        await store.input_requests.open(
            run, Question("q1", "?", None, None), now(), now() + timedelta(hours=1)
        )
    assert await events(store) == [("run.waiting", run, "chat")]


def activated(active: str | None) -> Project:
    project = builders.project(active=active, notifications=[entry()])
    if active:
        project.raw["status"]["activatedAt"] = format_second(now())
    return project


async def test_an_activation_is_recorded_once(store):
    for active in (None, "dep-a", "dep-a", "dep-b", "dep-a"):
        await store.projects.observe(activated(active))
    assert [(kind, name) for kind, name, _ in await events(store)] == [
        ("deployment.active", "dep-a"),
        ("deployment.active", "dep-b"),
        ("deployment.active", "dep-a"),
    ]


async def test_an_old_object_changes_nothing(store):
    older = activated("dep-a")
    await store.projects.observe(activated("dep-b"))
    await store.projects.observe(older)
    assert [name for _, name, _ in await events(store)] == ["dep-b"]


async def test_a_failed_build_is_recorded_once(store):
    await add_project(store, entry())
    built = {
        "type": "Built",
        "status": "False",
        "reason": "Failed",
        "message": "",
        "lastTransitionTime": format_second(now()),
    }
    failed: Deployment = builders.deployment("dep-a", "Failed", conditions=[built])
    await store.deployments.observe(failed)
    await store.deployments.observe(builders.deployment("dep-b", "Superseded", conditions=[built]))
    for _ in range(2):
        await account_batch(store)
    assert await events(store) == [("deployment.failed", "dep-a", "chat")]


async def insert(store, count: int, name="demo", uid="project-1", at: datetime | None = None) -> None:
    at = at or now()
    async with store.database.write() as connection:
        for index in range(count):
            event = ProjectEvent("run.failed", f"run-{index}", at)
            await outbox.insert_deliveries(connection, "crews", name, uid, ["chat"], event, at)


async def test_each_project_has_its_share_of_the_places(store):
    await insert(store, 10, "greedy", "project-2")
    await insert(store, 2)
    due = await store.deliveries.due(now() + timedelta(seconds=1), 3, 4)
    # The first of every project before the second of any.
    assert [row.project for row in due] == ["greedy", "demo", "greedy", "demo"]
    due = await store.deliveries.due(now() + timedelta(seconds=1), 3, 100)
    assert [row.project for row in due].count("greedy") == 3
    assert await store.deliveries.due(now() - timedelta(hours=1), 3, 100) == []


async def test_a_project_has_a_bounded_number_of_pending_deliveries(store, monkeypatch):
    monkeypatch.setattr(outbox, "MAX_PENDING_DELIVERIES", 3)
    await insert(store, 5)
    found = (await store.deliveries.page("project-1", now(), 0, 10)).items
    assert [row.status for row in found] == ["failed", "failed", "pending", "pending", "pending"]
    assert found[0].error == "3 deliveries of the project are pending"


async def test_deliveries_are_kept_for_seven_days_and_in_bounded_number(store, monkeypatch):
    await insert(store, 3, at=now() - timedelta(days=7, minutes=1))
    await insert(store, 5)
    await insert(store, 1, "other", "project-2")
    monkeypatch.setattr(table, "PURGE_BATCH_SIZE", 2)
    monkeypatch.setattr(table, "MAX_KEPT_DELIVERIES", 4)
    while await store.deliveries.purge(now()):
        pass
    found = await store.deliveries.page("project-1", now(), 0, 10)
    assert [row.object for row in found.items] == ["run-4", "run-3", "run-2", "run-1"]
    assert (await store.deliveries.page("project-2", now(), 0, 10)).total == 1


async def test_a_receiver_that_is_given_up_is_failing_until_it_takes_something(store):
    await add_project(store, entry(), entry("pager"))
    await insert(store, 2)
    first, second = await store.deliveries.due(now() + timedelta(seconds=1), 10, 10)
    expired = replace(first, expires_at=now() - timedelta(hours=1))
    await store.deliveries.record_attempt(first, decide(expired, Attempt(500, "status 500"), now(), 0.5))
    project = await store.projects.get("demo")
    assert project.failing_notifications == ["chat"]
    await store.deliveries.measure()
    assert (store.deliveries.failing, store.deliveries.pending) == (1, 1)
    # An observation of the object keeps it.
    await add_project(store, entry(), entry("pager"))
    assert (await store.projects.get("demo")).failing_notifications == ["chat"]
    await store.deliveries.record_attempt(second, decide(second, Attempt(200), now(), 0.5))
    assert (await store.projects.get("demo")).failing_notifications is None
    await store.deliveries.measure()
    assert (store.deliveries.failing, store.deliveries.pending) == (0, 0)


async def test_a_notification_that_was_removed_is_not_failing(store):
    await add_project(store, entry())
    await insert(store, 1)
    [row] = await store.deliveries.due(now() + timedelta(seconds=1), 10, 10)
    expired = replace(row, expires_at=now() - timedelta(hours=1))
    await store.deliveries.record_attempt(row, decide(expired, Attempt(500, "status 500"), now(), 0.5))
    await add_project(store, entry("pager"))
    await store.deliveries.measure()
    assert store.deliveries.failing == 0
    assert view.item(await store.projects.get("demo"))["failing_notifications"] == []


async def test_a_redelivery_during_an_attempt_wins(store):
    await add_project(store, entry())
    await insert(store, 1)
    [row] = await store.deliveries.due(now() + timedelta(seconds=1), 10, 10)
    again = await store.deliveries.redeliver("project-1", row.id, now() + timedelta(seconds=5))
    expired = replace(row, expires_at=now() - timedelta(hours=1))
    await store.deliveries.record_attempt(row, decide(expired, Attempt(500, "status 500"), now(), 0.5))
    [found] = (await store.deliveries.page("project-1", now(), 0, 10)).items
    assert (found, found.status) == (again, "pending")
    assert (await store.projects.get("demo")).failing_notifications is None
    with pytest.raises(Missing):
        await store.deliveries.redeliver("project-2", row.id, now())


async def test_a_deleted_project_leaves_no_deliveries(store):
    await add_project(store, entry())
    await insert(store, 2)
    await insert(store, 1, "other", "project-2")
    await store.projects.remove("demo", "project-1", now())
    assert (await store.deliveries.page("project-1", now(), 0, 10)).total == 0
    assert (await store.deliveries.page("project-2", now(), 0, 10)).total == 1
