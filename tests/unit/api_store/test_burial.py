"""What goes leaves a tombstone and a note of what is left to delete; a lost claim is not given anew."""

from sqlalchemy import select

from api.store.index import burial, removal
from api.store.index.claims import Asked, Denied, Unknown
from api.store.schema import claims, remains, run_counts, runs, tombstones
from api.store.store import Store
from tests.unit.api_store import given


async def rows(store: Store, table, *columns) -> list[tuple]:
    async with store.database.read() as connection:
        found = await connection.execute(select(*(table.c[name] for name in columns)).order_by(*columns))
        return [tuple(row) for row in found]


async def test_runs_of_a_removed_project_become_tombstones_in_batches(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 3)
    await given.yard(store)
    names = sorted([await given.claimed(store)] + [await given.accepted(store) for _ in range(6)])
    await store.record.observe(given.run(names[2], "Failed"), given.NOW)
    await store.projects.remove("demo", "project-1", given.later(60))
    assert [name for name, _ in await rows(store, tombstones, "name", "uid")] == names
    assert await rows(store, runs, "name") == await rows(store, claims, "run") == []
    assert await rows(store, run_counts, "project") == []
    left = [("build", "dep-a"), *(("run", name) for name in names)]
    assert await rows(store, remains, "kind", "name") == left


async def test_a_name_executes_once_also_when_its_record_is_gone(store: Store) -> None:
    await given.yard(store)
    name = await given.claimed(store)
    await store.record.observe(given.run(name, "Succeeded"), given.NOW)
    async with store.database.write() as connection:
        await burial.bury(connection, "crews", [name, "run-unknown"], given.NOW)
    await store.record.observe(given.run(name, uid="another"), given.NOW)
    assert await store.runs.get(name) is None
    asked = Asked("another", "pod", "nonce")
    assert isinstance(await store.claims.ask(name, asked, {}, given.NOW), Unknown)
    assert (await store.runs.page(0, 10)).total == 0


async def test_a_claim_that_only_the_object_knows_is_not_given_once_more(store: Store) -> None:
    await given.yard(store)
    status = {"claim": {"podUid": "pod", "time": "2026-11-21T10:00:07Z"}, "startTime": "2026-11-21T10:00:07Z"}
    await store.record.observe(given.run("run-a", "Running", **status), given.NOW)
    for pod in ("pod", "another"):
        asked = Asked("run-uid", pod, "nonce")
        assert isinstance(await store.claims.ask("run-a", asked, {}, given.NOW), Denied)
    assert not await store.claims.holds("run-a", "pod", "nonce")
    assert await store.claims.unwritten(9) == ()
    result = {"outcome": "succeeded", "output": "7"}
    await store.record.observe(given.run("run-a", "Succeeded", **status, result=result), given.NOW)
    page = await store.events.read("run-a", 0, 9)
    assert [(event.id, event.type) for event in page.events] == [(1, "run.started"), (2, "run.completed")]
    assert page.events[0].data["deployment_id"] == "dep_a"
