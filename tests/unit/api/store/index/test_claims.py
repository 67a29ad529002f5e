"""Tests of claims: a run is granted to one pod, once."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Engine, event

from api.store.index.claims.claims import Claimable, ClaimDenied, ClaimGranted, ClaimRequest, ClaimUnknown
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from crds.limits import CONFIG_BYTES
from tests.unit.api.store import builders

ANSWER = {"deployment_id": "dep_a", "entrypoint": "main:kickoff"}


async def test_one_of_200_claims_is_granted(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    asked = [ClaimRequest("run-uid", f"pod-{number % 20}", f"nonce-{number}") for number in range(200)]
    answers = await asyncio.gather(*(store.claims.grant(run, one, ANSWER, builders.NOW) for one in asked))
    granted = [answer for answer in answers if isinstance(answer, ClaimGranted)]
    assert len(granted) == 1
    assert all(isinstance(answer, ClaimDenied) for answer in answers if answer not in granted)
    row = await store.runs.get(run)
    assert row is not None
    assert row.started_at == builders.NOW


async def test_granted_run_reads_as_running(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    await store.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    await store.run_writer.observe(builders.run(run), builders.later(1))
    row = await store.runs.get(run)
    assert row is not None and row.status == "running"
    for status, count in (("running", 1), ("pending", 0)):
        found = await store.runs.page(0, 10, statuses=[status])
        assert (found.total, len(found.items)) == (count, count)


async def test_repeated_claim_returns_same_response(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store, input={"topic": "ants"})
    asked = ClaimRequest("run-uid", "pod", "nonce")
    first = await store.claims.grant(run, asked, ANSWER, builders.NOW)
    again = await store.claims.grant(run, asked, {"entrypoint": "other:thing"}, builders.later(5))
    assert isinstance(first, ClaimGranted)
    assert isinstance(again, ClaimGranted)
    assert (again.response, again.input, again.granted_at) == (ANSWER, {"topic": "ants"}, builders.NOW)
    assert (first.first, again.first) == (True, False)


@pytest.mark.parametrize(("phase", "spec"), [("Failed", {}), ("Canceled", {}), ("Running", {"cancel": True})])
async def test_repeated_claim_of_ended_run_is_denied(store: Store, phase: str, spec: dict[str, Any]) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    spec_fields = {"project": "demo", "deployment": "dep-a", **spec}
    await store.run_writer.observe(builders.run(run, phase, spec=spec_fields), builders.later(2))
    for answer in (None, ANSWER):
        again = await store.claims.grant(
            run, ClaimRequest("run-uid", "pod", "nonce"), answer, builders.later(3)
        )
        assert isinstance(again, ClaimDenied)


async def test_restarted_container_is_denied(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    answer = await store.claims.grant(
        run, ClaimRequest("run-uid", "pod", "another nonce"), ANSWER, builders.NOW
    )
    assert answer == ClaimDenied("the run was given to another pod")


@pytest.mark.parametrize(
    ("phase", "spec"),
    [
        ("Canceled", {"cancel": True}),
        ("Failed", {}),
        ("Pending", {"cancel": True}),
    ],
)
async def test_ended_or_canceled_run_is_denied(store: Store, phase: str, spec: dict[str, Any]) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    spec_fields = {"project": "demo", "deployment": "dep-a", **spec}
    await store.run_writer.observe(builders.run(run, phase, spec=spec_fields), builders.NOW)
    answer = await store.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, ClaimDenied)


async def test_a_name_executes_once(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await store.run_writer.observe(builders.run(run, "Succeeded", durationMs=5), builders.NOW)
    await store.run_writer.mark_deleted(run, "run-uid", builders.NOW)
    await store.run_writer.observe(builders.run(run, uid="second-uid"), builders.NOW)
    answer = await store.claims.grant(
        run, ClaimRequest("second-uid", "pod-2", "nonce-2"), ANSWER, builders.NOW
    )
    assert isinstance(answer, ClaimDenied)
    row = await store.runs.get(run)
    assert row is not None
    assert (row.status, row.uid) == ("succeeded", "run-uid")


async def test_withdrawn_run_is_denied(store: Store) -> None:
    await builders.add_demo_project(store)
    run, _ = await store.runs.create(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    await store.runs.withdraw(run, builders.NOW, object_absent=False)
    await store.run_writer.observe(builders.run(run), builders.NOW)
    answer = await store.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, ClaimDenied)
    assert await store.runs.get(run) is None


async def test_row_without_uid_is_unknown(store: Store) -> None:
    await builders.add_demo_project(store)
    run, _ = await store.runs.create(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    asked = ClaimRequest("run-uid", "pod", "nonce")
    assert await store.claims.grant(run, asked, ANSWER, builders.NOW) == ClaimUnknown()
    assert await store.claims.grant("run-nowhere", asked, ANSWER, builders.NOW) == ClaimUnknown()


async def test_holds(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    assert await store.claims.holds(run, "pod", "nonce")
    assert not await store.claims.holds(run, "pod", "other")
    assert not await store.claims.holds(run, "other", "nonce")
    await store.run_writer.observe(builders.run(run, "Failed"), builders.NOW)
    assert not await store.claims.holds(run, "pod", "nonce")


async def test_a_result_is_recorded_once(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    result = {"outcome": "succeeded", "durationMs": 5}
    assert await store.claims.record_result(run, "pod", "nonce", result) is False
    assert await store.claims.record_result(run, "pod", "nonce", result) is False
    assert await store.claims.record_result(run, "pod", "nonce", {**result, "durationMs": 6}) is None
    assert await store.claims.record_result(run, "pod", "other", result) is None
    await store.claims.mark_written(run, result=True)
    assert await store.claims.record_result(run, "pod", "nonce", result) is True


async def test_unwritten_claims(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    assert [row.run for row in await store.claims.unwritten(10)] == [run]
    await store.claims.mark_written(run, result=False)
    assert await store.claims.unwritten(10) == ()
    await store.claims.record_result(run, "pod", "nonce", {"outcome": "failed", "durationMs": 1})
    assert [row.result for row in await store.claims.unwritten(10)] == [
        {"outcome": "failed", "durationMs": 1}
    ]


async def test_result_during_claim_write_stays_unwritten(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    assert await store.claims.record_result(run, "pod", "nonce", {"outcome": "succeeded"}) is False
    await store.claims.mark_written(run, result=False)
    (waiting,) = await store.claims.unwritten(10)
    assert waiting.result == {"outcome": "succeeded"}
    await store.claims.mark_written(run, result=True)
    assert await store.claims.unwritten(10) == ()


async def test_unwritten_uses_an_index(store: Store) -> None:
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
            # The planner would scan an almost empty table, unless that is disabled.
            await connection.exec_driver_sql("SET enable_seqscan = off")
            plan = (await connection.exec_driver_sql("EXPLAIN " + query, ("crews", 10))).all()
            assert "claims_written" in str(plan)


@pytest.mark.parametrize(
    "spec", [{"inputRef": {"sha256": "0" * 64, "size": 20000}}, {"input": {"a": "x" * 300_000}}]
)
async def test_run_without_input_is_unclaimable(store: Store, spec: dict[str, Any]) -> None:
    await builders.add_demo_project(store)
    spec_fields = {"project": "demo", "deployment": "dep-a", **spec}
    await store.run_writer.observe(builders.run("run-a", spec=spec_fields), builders.NOW)
    answer = await store.claims.grant("run-a", ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, ClaimDenied) and answer.unclaimable
    assert "POST /v1/runs" in answer.reason
    row = await store.runs.get("run-a")
    assert row is not None and row.input is None


SETTINGS = {"config": {"tags": ["a"]}, "context": {"model": "small"}}


async def test_config_and_context_reach_the_claim_from_both_doors(store: Store) -> None:
    await builders.add_demo_project(store)
    spec_fields = RunRequest("demo", "dep-a", {}, config=SETTINGS["config"], context=SETTINGS["context"])
    posted, _ = await store.runs.create(spec_fields, builders.NOW, None)
    created = builders.run("run-b", spec={"project": "demo", "deployment": "dep-a", **SETTINGS})
    await store.run_writer.observe(builders.run(posted, spec=created.spec), builders.NOW)
    await store.run_writer.observe(created, builders.NOW)
    for name in (posted, "run-b"):
        row = await store.claims.peek(name, ClaimRequest("run-uid", "pod", "nonce"))
        assert isinstance(row, Claimable)
        assert (row.config, row.context) == (SETTINGS["config"], SETTINGS["context"])


async def test_object_with_a_config_above_the_limit_is_unclaimable(store: Store) -> None:
    await builders.add_demo_project(store)
    spec = {"project": "demo", "deployment": "dep-a", "config": {"tags": ["x" * CONFIG_BYTES]}}
    await store.run_writer.observe(builders.run("run-a", spec=spec), builders.NOW)
    answer = await store.claims.grant("run-a", ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, ClaimDenied) and answer.unclaimable
    assert "spec.config or spec.context is larger than 16 KiB" in answer.reason


async def test_object_with_other_input_ref(store: Store) -> None:
    await builders.add_demo_project(store)
    run, _ = await store.runs.create(RunRequest("demo", "dep-a", {"a": "x" * 20000}), builders.NOW, None)
    other = {"project": "demo", "deployment": "dep-a", "inputRef": {"sha256": "0" * 64, "size": 20008}}
    await store.run_writer.observe(builders.run(run, spec=other), builders.NOW)
    answer = await store.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), ANSWER, builders.NOW)
    assert isinstance(answer, ClaimDenied) and answer.unclaimable
