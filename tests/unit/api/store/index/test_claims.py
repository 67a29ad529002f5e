"""A run is given to one pod, once, whatever asks."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Engine, event

from api.store.index.claims.claims import Asked, Denied, Granted, Unknown
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from tests.unit.api.store import builders

ANSWER = {"deployment_id": "dep_a", "entrypoint": "main:kickoff"}


async def test_of_200_askers_one_is_granted_and_the_grant_is_in_the_row(store: Store) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    asked = [Asked("run-uid", f"pod-{number % 20}", f"nonce-{number}") for number in range(200)]
    answers = await asyncio.gather(*(store.claims.ask(run, one, ANSWER, builders.NOW) for one in asked))
    granted = [answer for answer in answers if isinstance(answer, Granted)]
    assert len(granted) == 1
    assert all(isinstance(answer, Denied) for answer in answers if answer not in granted)
    row = await store.runs.get(run)
    assert row is not None
    assert row.started_at == builders.NOW


async def test_a_granted_run_runs_for_every_reader_although_its_object_lags_behind(store: Store) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    await store.claims.ask(run, Asked("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    await store.record.observe(builders.run(run), builders.later(1))
    row = await store.runs.get(run)
    assert row is not None and row.status == "running"
    for status, count in (("running", 1), ("pending", 0)):
        found = await store.runs.page(0, 10, status=status)
        assert (found.total, len(found.items)) == (count, count)


async def test_the_same_pod_and_nonce_get_the_same_answer_for_ever(store: Store) -> None:
    await builders.yard(store)
    run = await builders.accepted(store, input={"topic": "ants"})
    asked = Asked("run-uid", "pod", "nonce")
    first = await store.claims.ask(run, asked, ANSWER, builders.NOW)
    again = await store.claims.ask(run, asked, {"entrypoint": "other:thing"}, builders.later(5))
    assert isinstance(first, Granted)
    assert isinstance(again, Granted)
    assert (again.answer, again.input, again.granted_at) == (ANSWER, {"topic": "ants"}, builders.NOW)
    assert (first.first, again.first) == (True, False)


@pytest.mark.parametrize(("phase", "spec"), [("Failed", {}), ("Canceled", {}), ("Running", {"cancel": True})])
async def test_who_never_heard_of_the_grant_does_not_start_what_has_ended_since(
    store: Store, phase: str, spec: dict[str, Any]
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    wanted = {"project": "demo", "deployment": "dep-a", **spec}
    await store.record.observe(builders.run(run, phase, spec=wanted), builders.later(2))
    for answer in (None, ANSWER):
        again = await store.claims.ask(run, Asked("run-uid", "pod", "nonce"), answer, builders.later(3))
        assert isinstance(again, Denied)


async def test_a_restarted_container_of_the_same_pod_is_refused(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    answer = await store.claims.ask(run, Asked("run-uid", "pod", "another nonce"), ANSWER, builders.NOW)
    assert answer == Denied("the run was given to another pod")


@pytest.mark.parametrize(
    ("phase", "spec"),
    [
        ("Canceled", {"cancel": True}),
        ("Failed", {}),
        ("Pending", {"cancel": True}),
    ],
)
async def test_an_ended_or_canceled_run_is_refused(store: Store, phase: str, spec: dict[str, Any]) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    wanted = {"project": "demo", "deployment": "dep-a", **spec}
    await store.record.observe(builders.run(run, phase, spec=wanted), builders.NOW)
    answer = await store.claims.ask(run, Asked("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, Denied)


async def test_a_name_executes_once(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    await store.record.observe(builders.run(run, "Succeeded", durationMs=5), builders.NOW)
    await store.record.vanish(run, "run-uid", builders.NOW)
    await store.record.observe(builders.run(run, uid="second-uid"), builders.NOW)
    answer = await store.claims.ask(run, Asked("second-uid", "pod-2", "nonce-2"), ANSWER, builders.NOW)
    assert isinstance(answer, Denied)
    row = await store.runs.get(run)
    assert row is not None
    assert (row.status, row.uid) == ("succeeded", "run-uid")


async def test_a_withdrawn_run_is_refused_even_if_its_object_appears(store: Store) -> None:
    await builders.yard(store)
    run, _ = await store.runs.accept(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    await store.runs.withdraw(run, builders.NOW, gone=False)
    await store.record.observe(builders.run(run), builders.NOW)
    answer = await store.claims.ask(run, Asked("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, Denied)
    assert await store.runs.get(run) is None


async def test_without_a_uid_in_the_row_the_object_must_be_read(store: Store) -> None:
    await builders.yard(store)
    run, _ = await store.runs.accept(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    asked = Asked("run-uid", "pod", "nonce")
    assert await store.claims.ask(run, asked, ANSWER, builders.NOW) == Unknown()
    assert await store.claims.ask("run-nowhere", asked, ANSWER, builders.NOW) == Unknown()


async def test_only_the_holder_of_a_live_run_holds_it(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    assert await store.claims.holds(run, "pod", "nonce")
    assert not await store.claims.holds(run, "pod", "other")
    assert not await store.claims.holds(run, "other", "nonce")
    await store.record.observe(builders.run(run, "Failed"), builders.NOW)
    assert not await store.claims.holds(run, "pod", "nonce")


async def test_a_result_is_recorded_once(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    result = {"outcome": "succeeded", "durationMs": 5}
    assert await store.claims.report(run, "pod", "nonce", result) is False
    assert await store.claims.report(run, "pod", "nonce", result) is False
    assert await store.claims.report(run, "pod", "nonce", {**result, "durationMs": 6}) is None
    assert await store.claims.report(run, "pod", "other", result) is None
    await store.claims.written(run, result=True)
    assert await store.claims.report(run, "pod", "nonce", result) is True


async def test_the_outbox_holds_what_is_not_in_its_object(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    assert [row.run for row in await store.claims.unwritten(10)] == [run]
    await store.claims.written(run, result=False)
    assert await store.claims.unwritten(10) == ()
    await store.claims.report(run, "pod", "nonce", {"outcome": "failed", "durationMs": 1})
    assert [row.result for row in await store.claims.unwritten(10)] == [
        {"outcome": "failed", "durationMs": 1}
    ]


async def test_a_result_that_comes_while_its_claim_is_written_is_still_to_be_written(store: Store) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    assert await store.claims.report(run, "pod", "nonce", {"outcome": "succeeded"}) is False
    await store.claims.written(run, result=False)
    (waiting,) = await store.claims.unwritten(10)
    assert waiting.result == {"outcome": "succeeded"}
    await store.claims.written(run, result=True)
    assert await store.claims.unwritten(10) == ()


async def test_what_is_unwritten_is_found_by_an_index_among_all_claims_ever(store: Store) -> None:
    asked: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    await store.claims.unwritten(10)
    event.remove(Engine, "before_cursor_execute", note)
    (query,) = (statement for statement in asked if "claims" in statement)
    async with store.database.read() as connection:
        if connection.dialect.name == "sqlite":
            plan = (await connection.exec_driver_sql("EXPLAIN QUERY PLAN " + query, ("crews", 10, 0))).all()
            assert "claims_written (namespace=? AND written=?)" in str(plan[0])
        else:
            # A table that is almost empty would be read whole, unless that is forbidden.
            await connection.exec_driver_sql("SET enable_seqscan = off")
            plan = (await connection.exec_driver_sql("EXPLAIN " + query, ("crews", 10))).all()
            assert "claims_written" in str(plan)


@pytest.mark.parametrize(
    "spec", [{"inputRef": {"sha256": "0" * 64, "size": 20000}}, {"input": {"a": "x" * 300_000}}]
)
async def test_a_run_whose_input_is_not_held_is_nobodys(store: Store, spec: dict[str, Any]) -> None:
    await builders.yard(store)
    wanted = {"project": "demo", "deployment": "dep-a", **spec}
    await store.record.observe(builders.run("run-a", spec=wanted), builders.NOW)
    answer = await store.claims.ask("run-a", Asked("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, Denied) and answer.nor_of_another
    assert "POST /v1/runs" in answer.reason
    row = await store.runs.get("run-a")
    assert row is not None and row.input is None


async def test_an_object_that_names_another_input_does_not_get_this_one(store: Store) -> None:
    await builders.yard(store)
    run, _ = await store.runs.accept(RunRequest("demo", "dep-a", {"a": "x" * 20000}), builders.NOW, None)
    other = {"project": "demo", "deployment": "dep-a", "inputRef": {"sha256": "0" * 64, "size": 20008}}
    await store.record.observe(builders.run(run, spec=other), builders.NOW)
    answer = await store.claims.ask(run, Asked("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, Denied) and answer.nor_of_another
