"""The audit log of a store: in the transaction of the change, chained, pruned without breaking the chain."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, update

from api.store.errors import StoreUnavailable
from api.store.index.audit import audit_log, chain
from api.store.index.audit.audit_log import AuditFilter
from api.store.index.audit.change import Change, describe, making
from api.store.index.idempotency import Idempotency
from api.store.sql.schema import audit
from api.store.store import Store
from crewyard import audit_chain
from tests.unit.api.store import builders

NOW = builders.NOW


def change(number: int = 0, actor: str = "key:a", project: str | None = "demo") -> Change:
    time = NOW + timedelta(seconds=number)
    return Change(time, actor, "192.0.2.7", "POST", "/v1/runs", f"req_{number}", project)


async def records(store: Store, wanted: AuditFilter | None = None) -> list[dict]:
    return [record async for batch in store.audit.oldest_first(wanted or AuditFilter()) for record in batch]


async def make_changes(store: Store, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        with making(change(number, "key:ab"[-(1 + number % 2) :], "demo" if number % 3 else "other")):
            await store.audit.record_ahead()


async def test_a_change_is_recorded_once_with_its_first_write(store: Store) -> None:
    with making(change()):
        describe(target="run_1")
        await store.idempotency.put(Idempotency("k", "1", "0" * 64), "run-1", NOW)
        await store.idempotency.put(Idempotency("k", "2", "0" * 64), "run-2", NOW)
        await store.audit.record_ahead()
    await store.idempotency.put(Idempotency("k", "3", "0" * 64), "run-3", NOW)
    (record,) = await records(store)
    expected = {
        "number": 1,
        "actor": "key:a",
        "remote": "192.0.2.7",
        "project": "demo",
        "target": "run_1",
        "outcome": "accepted",
        "code": None,
        "request_id": "req_0",
        "previous": "0" * 64,
    }
    assert expected.items() <= record.items()
    assert record["hash"] == chain.digest(record) == audit_chain.digest(record)


async def test_what_is_rolled_back_is_not_recorded(store: Store) -> None:
    made = change()
    with making(made):
        with pytest.raises(ZeroDivisionError):
            async with store.database.write():
                raise ZeroDivisionError
        assert not made.recorded
        await store.audit.record_ahead()
    assert [record["number"] for record in await records(store)] == [1]


async def test_a_task_that_outlives_its_request_records_nothing(store: Store) -> None:
    made = change()
    with making(made):
        pass
    with making(made):
        await store.audit.record_ahead()
    assert await records(store) == []


async def test_pages_and_filters(store: Store) -> None:
    await make_changes(store, 12)
    page = await store.audit.page(AuditFilter(), 0, 5)
    assert ([record["number"] for record in page.items], page.total) == ([12, 11, 10, 9, 8], 12)
    mine = await store.audit.page(AuditFilter(frozenset({"other"})), 0, 100)
    assert [record["project"] for record in mine.items] == ["other"] * 4
    assert (await store.audit.page(AuditFilter(frozenset()), 0, 100)).total == 0
    actor = (await records(store))[0]["actor"]
    assert (await store.audit.page(AuditFilter(actor=actor), 0, 100)).total == 6
    some = AuditFilter(since=NOW + timedelta(seconds=3), until=NOW + timedelta(seconds=5))
    assert [record["request_id"] for record in await records(store, some)] == ["req_3", "req_4"]


async def test_an_intact_chain_is_verified(store: Store) -> None:
    assert audit_chain.verify(await records(store)) == (0, "0" * 64)
    await make_changes(store, 7)
    known = audit_chain.verify(await records(store))
    await make_changes(store, 3, start=7)
    found = await records(store)
    assert audit_chain.verify(found, known) == (10, found[-1]["hash"])


HERE = audit.c.namespace != ""
TAMPERED = {
    "changed": (
        update(audit).where(HERE, audit.c.number == 4).values(actor="key:else"),
        "record 4 was changed",
    ),
    "missing": (delete(audit).where(HERE, audit.c.number == 4), "record 4 is missing"),
    "first missing": (delete(audit).where(HERE, audit.c.number <= 4), "up to 4 are missing"),
    "last missing": (delete(audit).where(HERE, audit.c.number == 10), "ends with record 9"),
}


@pytest.mark.parametrize("case", TAMPERED)
async def test_a_tampered_log_is_noticed(store: Store, case: str) -> None:
    await make_changes(store, 10)
    known = audit_chain.verify(await records(store))
    statement, message = TAMPERED[case]
    async with store.database.write() as connection:
        await connection.execute(statement)
    with pytest.raises(audit_chain.AuditBroken, match=message):
        audit_chain.verify(await records(store), known)


async def test_reordered_and_rewritten_records_are_noticed(store: Store) -> None:
    await make_changes(store, 6)
    found = await records(store)
    known = audit_chain.verify(found)
    swapped = [*found[:2], {**found[3], "number": 3}, {**found[2], "number": 4}, *found[4:]]
    with pytest.raises(audit_chain.AuditBroken, match="record 3 was changed"):
        audit_chain.verify(swapped)
    rehashed = [*found[:2], *({**record, "hash": audit_chain.digest(record)} for record in swapped[2:])]
    with pytest.raises(audit_chain.AuditBroken, match="record 3 does not continue record 2"):
        audit_chain.verify(rehashed)
    # Who rewrites the whole chain is noticed by what an earlier verification printed.
    previous, rewritten = "0" * 64, []
    for record in found:
        forged = {**record, "actor": "key:else", "previous": previous}
        rewritten.append({**forged, "hash": audit_chain.digest(forged)})
        previous = rewritten[-1]["hash"]
    assert audit_chain.verify(rewritten)[0] == 6
    with pytest.raises(audit_chain.AuditBroken, match="another one than at the last verification"):
        audit_chain.verify(rewritten, known)


async def test_retention_removes_the_oldest_and_keeps_the_rest_verifiable(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(audit_log, "MIN_PRUNED_RECORDS", 3)
    monkeypatch.setattr(audit_log, "MAX_PRUNED_RECORDS", 4)
    await make_changes(store, 12)
    before, now = NOW + timedelta(seconds=2), NOW + timedelta(days=1)
    assert await store.audit.prune(before, 1000, now) == 0  # two are due, and three are the least
    assert await store.audit.prune(before, 6, now) == 4
    assert await store.audit.prune(before, 6, now) == 3
    found = await records(store)
    assert [record["number"] for record in found] == list(range(8, 15))
    markers = [(r["target"], r["outcome"]) for r in found if r["actor"] == "service"]
    assert markers == [("4", "pruned"), ("7", "pruned")]
    assert audit_chain.verify(found) == (14, found[-1]["hash"])
    with pytest.raises(audit_chain.AuditBroken, match="retention did not remove them"):
        audit_chain.verify(found[1:])
    assert await store.audit.prune(now + timedelta(days=1), 1, now) == 4
    assert audit_chain.verify(await records(store))[0] == 15


async def test_a_clock_that_was_behind_removes_no_record_before_it(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(audit_log, "MIN_PRUNED_RECORDS", 1)
    for seconds in (-9, 1, -8, -7, 2):
        await make_changes(store, 1, start=seconds)
    assert await store.audit.prune(NOW, 1000, NOW) == 1
    assert [record["number"] for record in await records(store)] == [2, 3, 4, 5, 6]
    assert await store.audit.prune(NOW + timedelta(seconds=2), 1000, NOW) == 3


async def test_a_log_that_retention_shortens_while_it_is_read_is_intact(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(audit_log, "MIN_PRUNED_RECORDS", 3)
    await make_changes(store, 12)
    for left in (8, 5):
        found = await records(store)
        assert await store.audit.prune(NOW, left, NOW) > 0
        read_across = found + [record for record in await records(store) if record not in found]
        assert audit_chain.verify(read_across) == (read_across[-1]["number"], read_across[-1]["hash"])
        with pytest.raises(audit_chain.AuditBroken, match="retention did not remove them"):
            audit_chain.verify(read_across[1:])


async def test_a_log_that_lost_the_known_record_is_not_called_intact(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(audit_log, "MIN_PRUNED_RECORDS", 1)
    heads = {}
    for number in range(6):
        await make_changes(store, 1, start=number)
        heads[number + 1] = audit_chain.verify(await records(store))
    assert await store.audit.prune(NOW, 2, NOW) == 4
    found = await records(store)
    assert audit_chain.verify(found, heads[5])[0] == audit_chain.verify(found, heads[4])[0] == 7
    for known in (heads[3], (4, "0" * 64)):
        with pytest.raises(audit_chain.KnownRecordGone, match="begins with record 5"):
            audit_chain.verify(found, known)


async def test_a_change_that_cannot_be_recorded_does_not_happen(store: Store, monkeypatch) -> None:
    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(store.audit, "_append", unavailable)
    with making(change()), pytest.raises(StoreUnavailable):
        await store.idempotency.put(Idempotency("k", "1", "0" * 64), "run-1", NOW)
    assert await store.idempotency.find(Idempotency("k", "1", "0" * 64), NOW) is None
