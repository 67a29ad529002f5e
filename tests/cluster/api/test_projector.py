"""Rows follow objects, also after gaps in the watch; ended objects are deleted, rows stay."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from api.v1.runs.create import RunRequest, create_run
from crds import names
from crds.kinds import DEPLOYMENT, POD, PROJECT, RUN
from tests.cluster.api.conftest import StoreTestbed, until

Start = Callable[..., Awaitable[None]]
REQUEST = RunRequest("demo", "dep-a", {})


async def create_accepted_run(testbed: StoreTestbed) -> str:
    return (await create_run(testbed.store, testbed.kube, REQUEST, datetime.now(UTC))).name


async def status(testbed: StoreTestbed, run: str) -> str | None:
    row = await testbed.store.runs.get(run)
    return row.status if row else None


async def test_kubectl_run_gets_one_terminal_event(testbed: StoreTestbed, work: Start) -> None:
    await work()
    await testbed.kube.create(RUN, {"metadata": {"name": "run-by-hand"}, "spec": {"project": "demo"}})
    await until(lambda: status(testbed, "run-by-hand"))
    await testbed.end_run("run-by-hand", project="demo", deployment="dep-a")

    async def ended() -> bool:
        return await status(testbed, "run-by-hand") == "succeeded"

    await until(ended)
    page = await testbed.store.events.read("run-by-hand", 0, 10)
    assert [(event.id, event.type) for event in page.events] == [(1, "run.completed")]
    assert (await testbed.store.runs.page(0, 10, project="demo", deployment="dep-a")).total == 1


async def test_activation_is_visible_in_one_step(testbed: StoreTestbed, work: Start) -> None:
    await work()
    patch = {"status": {"activeDeployment": "dep-a", "activatedAt": "2026-11-21T10:00:00Z"}}
    await testbed.kube.patch(PROJECT, "demo", patch, "status")

    async def active() -> bool:
        row = await testbed.store.deployments.get("dep-a")
        return row is not None and row.status == "active"

    await until(active)


async def test_list_finds_deletions_missed_by_the_watch(testbed: StoreTestbed, work: Start) -> None:
    live, ended = await create_accepted_run(testbed), await create_accepted_run(testbed)
    await testbed.kube.create(PROJECT, {"metadata": {"name": "other"}, "spec": {}})
    await work()
    await until(lambda: testbed.store.projects.get("other"))
    # While the watch is stopped:
    await testbed.kube.delete(PROJECT, "other")
    await testbed.end_run(ended)
    await testbed.kube.delete(RUN, live)
    await work()
    row = await until(lambda: testbed.store.runs.get(live))
    assert await testbed.store.projects.get("other") is None
    assert await status(testbed, ended) == "succeeded"
    assert (row.status, row.error["reason"]) == ("canceled", "Deleted")
    assert (await testbed.store.events.read(live, 0, 9)).events[-1].type == "run.canceled"


async def test_deleted_run_is_canceled_immediately(testbed: StoreTestbed, work: Start) -> None:
    await work()
    run = await create_accepted_run(testbed)
    await testbed.kube.delete(RUN, run)

    async def canceled() -> bool:
        return await status(testbed, run) == "canceled"

    await until(canceled)


async def test_ended_object_expires_and_its_row_stays(testbed: StoreTestbed, work: Start) -> None:
    await work(run_ttl=0.2)
    live, ended = await create_accepted_run(testbed), await create_accepted_run(testbed)
    await testbed.end_run(ended)

    async def pruned() -> bool:
        return await testbed.kube.get(RUN, ended) is None

    await until(pruned)
    assert await testbed.kube.get(RUN, live) is not None
    assert await status(testbed, ended) == "succeeded"
    assert (await testbed.store.events.read(ended, 0, 9)).ended
    # A name executes once: the row of the first execution stays when the object is recreated.
    recreated = await testbed.kube.create(RUN, {"metadata": {"name": ended}, "spec": {"project": "demo"}})
    await testbed.end_run(ended, phase="Failed")
    row = await testbed.store.runs.get(ended)
    assert row is not None
    assert (row.status, row.uid != recreated["metadata"]["uid"]) == ("succeeded", True)


async def test_recreated_project_shows_nothing_of_the_old_one(testbed: StoreTestbed, work: Start) -> None:
    await work()
    run = await create_accepted_run(testbed)
    await testbed.kube.delete(PROJECT, "demo")
    project: dict[str, Any] = await testbed.kube.create(PROJECT, {"metadata": {"name": "demo"}, "spec": {}})

    async def recreated() -> bool:
        row = await testbed.store.projects.get("demo")
        return row is not None and row.uid == project["metadata"]["uid"]

    await until(recreated)
    assert await status(testbed, run) is None
    assert (await testbed.store.deployments.page("demo", 0, 10)).total == 0

    async def collected() -> bool:
        return not (await testbed.kube.list(DEPLOYMENT)).items and not (await testbed.kube.list(RUN)).items

    await until(collected, 300)
    assert (await testbed.store.runs.page(0, 10)).total == 0


async def test_kaniko_log_is_followed_and_stored(testbed: StoreTestbed, work: Start) -> None:
    await work()
    script = "for n in 1 2 3 4 5; do echo line $n; sleep 0.2; done; printf 'no end'"
    labels = {
        names.LABEL_DEPLOYMENT: "dep-a",
        names.LABEL_COMPONENT: names.COMPONENT_BUILD,
    }
    container = {
        "name": "kaniko",
        "image": "registry.crewyard.internal:5000/library/python:3.11-slim",
        "command": ["sh", "-c", script],
    }
    await testbed.kube.create(
        POD,
        {
            "metadata": {"name": "dep-a-d1", "labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "initContainers": [container],
                "containers": [{**container, "name": "push", "command": ["true"]}],
            },
        },
    )
    expected = "".join(f"line {number}\n" for number in range(1, 6)) + "no end\n"

    async def log_complete() -> bool:
        return (await testbed.store.build_logs.read("dep-a")).text == expected

    await until(log_complete, 300)
    await work()
    await testbed.kube.delete(POD, "dep-a-d1", grace_seconds=0)
    assert (await testbed.store.build_logs.read("dep-a")).text == expected
