"""Tests of the queries of maintenance and resync: each uses an index, and each round is bounded."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from api.maintenance import garbage, retention
from api.maintenance.maintenance_round import MaintenanceRound
from api.maintenance.retention import RetentionPolicy
from api.store.index.runs.runs import RunRequest
from api.store.sql.migrate import migrate
from api.store.sql.schema import artifacts, claims, run_counts, runs
from api.store.store import Store
from api.store.token_counts import TokenCounts
from tests.unit.api.store import builders

COUNT = 4000


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "namespace": "crews",
        "name": f"run-{number:07}",
        "uid": f"uid-{number}",
        "ord": number,
        "version": 1,
        "project": f"p{number % 40}",
        "project_uid": None,
        "deployment": "dep-a",
        "status": "succeeded",
        "hidden": False,
        "withdrawn": False,
        "present": False,
        "created_at": builders.NOW,
        "completed_at": builders.NOW + timedelta(seconds=number),
        "input": {},
        "cancel": False,
        "terminal": {"type": "run.completed", "data": {}},
        "terminal_id": 3,
        "accounted": True,
        "sealed": True,
        **changed,
    }


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of many ended and sealed runs in many projects."""
    import sqlalchemy

    directory = tmp_path_factory.mktemp("filled")
    migrate(directory / "index.sqlite3")
    engine = sqlalchemy.create_engine(f"sqlite:///{directory / 'index.sqlite3'}")
    with engine.begin() as connection:
        for start in range(0, COUNT, 1000):
            numbers = range(start, start + 1000)
            connection.execute(runs.insert(), [row(number) for number in numbers])
            connection.execute(
                claims.insert(),
                [
                    {
                        "namespace": "crews",
                        "run": f"run-{number:07}",
                        "run_uid": "u",
                        "pod_uid": "p",
                        "nonce": "n",
                        "granted_at": builders.NOW,
                        "answer": {},
                        "written": True,
                        "result_written": True,
                    }
                    for number in numbers
                ],
            )
            connection.execute(
                artifacts.insert(),
                [
                    {
                        "namespace": "crews",
                        "run": f"run-{number:07}",
                        "name": "a",
                        "version": 1,
                        "size": 3,
                        "sha256": "x",
                        "content_type": "text/plain",
                        "partial": False,
                        "created_at": builders.NOW,
                        "blob": f"crews/runs/run-{number:07}/x",
                    }
                    for number in numbers
                ],
            )
        counted = {"namespace": "crews", "deployment": "dep-a", "status": "succeeded", "count": COUNT // 40}
        connection.execute(run_counts.insert(), [{**counted, "project": f"p{n}"} for n in range(40)])
    engine.dispose()
    return directory


@pytest.fixture
async def store(filled: Path) -> AsyncIterator[Store]:
    opened = await Store.open(filled, "crews")
    yield opened
    await opened.close()


def watch(store: Store, statements: list[tuple[str, Any]]) -> Callable[[], None]:
    """Record every statement that the store executes."""
    engines = [store.database._readers.sync_engine, store.database._writer.sync_engine]  # type: ignore[attr-defined]

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        statements.append((statement, parameters[0] if many else parameters))

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)

    def stop() -> None:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)

    return stop


async def test_maintenance_queries_use_indexes(store: Store) -> None:
    statements: list[tuple[str, Any]] = []
    withdrawn, _ = await store.runs.create(RunRequest("p1", "dep-a", {}), builders.NOW, None)
    stop = watch(store, statements)
    now = builders.NOW + timedelta(days=30)
    await MaintenanceRound(store, RetentionPolicy(30 * 24 * 3600 - 500), 300).run_once(now)
    await store.runs.prunable(now, 9, project="p1")
    await store.runs.prunable(now, 9, excluded_projects=["p1", "p2"])
    await store.runs.prunable(now, 9, excluded_namespaces=[None, "team-a"])
    await store.expired_records.run_blobs(["run-0000001", "run-0000002"])
    await store.uploads.existing(["upl_1"])
    await store.idempotency.delete_expired(now)
    await store.usage.unmeasured_runs(COUNT, 9)
    await store.usage.record_usage({"run-0000001": TokenCounts(1, 2)})
    await store.run_writer.live()
    await store.run_writer.present("team-a")
    await store.project_storage.of("p1")
    await store.input_requests.unwritten(9)
    await store.runs.withdraw(withdrawn, now, object_absent=True)
    stop()
    scans = []
    async with store.database.read() as connection:
        for statement, parameters in statements:
            if not statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")):
                continue
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(parameters))
            for step in plan.all():
                # A constraint on the namespace alone selects everything: there is only one.
                whole = step.detail.startswith("SCAN") or step.detail.endswith("(namespace=?)")
                if whole and not any(
                    f" {table} " in f"{step.detail} " for table in ("projects", "remains", "run_counts")
                ):
                    scans.append((step.detail, statement))
    # The limit on the uploads of all projects.
    scans = [scan for scan in scans if "sum(uploads.size)" not in scan[1] or "uploads.project =" in scan[1]]
    assert len(statements) > 40
    assert scans == []


async def test_maintenance_round_is_bounded(store: Store) -> None:
    statements: list[tuple[str, Any]] = []
    keeper, now = (
        MaintenanceRound(store, RetentionPolicy(30 * 24 * 3600 - 2000), 300),
        builders.NOW + timedelta(days=31),
    )
    stop = watch(store, statements)
    # At most one batch per project, each in its own transaction; then the remains of some runs.
    done = await keeper.run_once(now)
    assert 1500 < done <= 40 * retention.RUNS_PER_TRANSACTION + garbage.BATCH_SIZE
    stop()
    assert (
        sum(statement.startswith("BEGIN IMMEDIATE") for statement, _ in statements)
        <= 40 + garbage.BATCH_SIZE + 5
    )
    assert len(statements) < 2500


@pytest.mark.parametrize("project", [None, "p1"])
@pytest.mark.parametrize("projects", [None, frozenset({"p1"}), frozenset({"p1", "p2"})])
@pytest.mark.parametrize("deployment", [None, "dep-a"])
@pytest.mark.parametrize("statuses", [None, ["succeeded"], ["failed", "succeeded"]])
async def test_a_page_on_the_event_loop_reads_its_runs_alone(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    project: str | None,
    projects: frozenset[str] | None,
    deployment: str | None,
    statuses: list[str] | None,
) -> None:
    brief, briefly = [], store.database.brief_read
    monkeypatch.setattr(store.database, "brief_read", lambda: brief.append(True) or briefly())
    statements: list[tuple[str, Any]] = []
    stop = watch(store, statements)
    page = await store.runs.page(20, 9, project, deployment, statuses, projects)
    stop()
    assert len(page.items) == 9
    listed = [found for found in statements if " LIMIT " in found[0]]
    assert len(listed) == 1
    if not brief:
        return
    filters = {"project": project or projects, "deployment": deployment, "status": statuses}
    [(statement, parameters)] = listed
    async with store.database.read() as connection:
        plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(parameters))
        steps = [step.detail for step in plan.all()]
    selected = " ".join(step for step in steps if "USING COVERING INDEX" in step)
    assert [name for name, value in filters.items() if value and f"{name}=?" not in selected] == []
    assert not any("TEMP B-TREE" in step for step in steps)


async def test_a_page_of_one_project_or_status_needs_no_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.database, "read", None)
    demo = frozenset({"p1"})
    for project, projects in ((None, None), ("p1", None), (None, demo), ("p1", demo)):
        for statuses in (None, ["succeeded"]):
            page = await store.runs.page(20, 9, project, None, statuses, projects)
            assert len(page.items) == 9
    assert len((await store.runs.page(20, 9, deployment="dep-a")).items) == 9


async def test_a_page_shows_no_project_that_a_key_may_not_see(store: Store) -> None:
    for visible in (frozenset(), {"p1"}, {"p1", "p2"}):
        page = await store.runs.page(0, 9, "p3", projects=frozenset(visible))
        assert (page.total, page.items) == (0, ())
