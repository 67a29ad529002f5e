"""Labels of runs and the lists by label and time: they find what a plain search of all runs finds."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, select

from api.store.index.runs import filtered_listing
from api.store.index.runs.filtered_listing import RunSelection
from api.store.index.runs.runs import RunRequest
from api.store.sql.schema import run_labels
from api.store.store import Store
from crds.objects import Run
from tests.unit.api.store import builders


async def add_run(store: Store, number: int, project: str = "demo", deployment: str = "dep-a", **labels: str):
    """Add a run that was created `number` minutes after NOW; return its name."""
    request = RunRequest(project, deployment, {}, labels=labels)
    name, _ = await store.runs.create(request, builders.NOW + timedelta(minutes=number), None)
    return name


def observed(name: str, phase: str = "Pending", labels: dict[str, str] | None = None, **more: Any) -> Run:
    """Return the object of a run with labels."""
    raw = builders.run(name, phase, uid=f"uid-of-{name}", **more).raw
    return Run({**raw, "metadata": {**raw["metadata"], "labels": labels or {}}})


async def find(store: Store, *labels: str, offset: int = 0, limit: int = 100, **more: Any):
    """Return the names of a page by labels, with its total."""
    times = {name: more.pop(name) for name in ("created_after", "created_before") if name in more}
    page = await store.runs.page(offset, limit, selection=RunSelection(labels, **times), **more)
    return [row.name for row in page.items], page.total


async def label_rows(store: Store) -> int:
    async with store.database.read() as connection:
        return int((await connection.execute(select(func.count()).select_from(run_labels))).scalar_one())


async def test_all_filters_apply(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start of the statement gives the same runs."""
    await builders.add_demo_project(store)
    made = {}
    for number in range(24):
        labels = {"parity": "even" if number % 2 == 0 else "odd", "third": str(number % 3)}
        project, deployment = ("demo", "other")[number % 4 == 3], ("dep-a", "dep-b")[number % 5 == 0]
        name = await add_run(store, number, project, deployment, **labels)
        status = "pending"
        if number % 6 == 1:
            status = "succeeded"
            where = {"project": project, "deployment": deployment}
            await store.run_writer.observe(observed(name, "Succeeded", labels, **where), builders.NOW)
        made[name] = {**labels, "project": project, "deployment": deployment, "status": status, "at": number}
    minute = {number: builders.NOW + timedelta(minutes=number) for number in range(25)}

    def expected(labels: dict[str, str], first: int = 0, last: int = 24, **columns: str) -> list[str]:
        wanted = {**labels, **columns}.items()
        return [
            name
            for name, facts in reversed(made.items())
            if wanted <= facts.items() and first <= facts["at"] < last
        ]

    hits = 0
    for chosen in (filtered_listing.choose, lambda *_: filtered_listing.COLUMNS):
        monkeypatch.setattr(filtered_listing, "choose", chosen)
        for labels in ({}, {"parity": "even"}, {"third": "1"}, {"parity": "odd", "third": "1"}):
            pairs = [f"{key}={value}" for key, value in labels.items()]
            for columns in (
                {"project": "demo"},
                {"status": "succeeded", "project": "other"},
                {"status": "pending", "deployment": "dep-b"},
            ):
                more = {key: value for key, value in columns.items() if key != "status"}
                more |= {"statuses": [columns["status"]]} if "status" in columns else {}
                times = {"created_after": minute[5], "created_before": minute[20]}
                names = expected(labels, 5, 20, **columns)
                assert await find(store, *pairs, **more, **times) == (names, len(names))
                hits += bool(names)
    assert hits >= 12
    names = [name for name in expected({"third": "1"}) if made[name]["status"] == "pending"]
    projects = frozenset(["demo", "other"])
    found = await find(store, "third=1", statuses=["running", "pending"], projects=projects)
    assert found == (names, len(names))
    assert await find(store, "third=1", projects=frozenset()) == ([], 0)


async def test_total_is_capped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_listing, "MAX_TOTAL", 5)
    await builders.add_demo_project(store)
    names = [await add_run(store, number, team="tides") for number in range(9)][::-1]
    selection = RunSelection(("team=tides",))
    seen: list[str] = []
    for offset, total, capped in ((0, 5, True), (2, 5, True), (4, 7, True), (6, 9, True), (8, 9, False)):
        page = await store.runs.page(offset, 2, selection=selection)
        assert (page.total, page.capped) == (total, capped), offset
        seen += [row.name for row in page.items]
    assert seen == names
    beyond = await store.runs.page(20, 2, selection=selection)
    assert (beyond.items, beyond.total, beyond.capped) == ((), 9, False)


async def test_labels_follow_the_object(store: Store) -> None:
    await builders.add_demo_project(store)
    own = {"crewyard.dev/project": "demo", "app.kubernetes.io/managed-by": "crewyard"}
    await store.run_writer.observe(observed("run-1", labels={**own, "team": "tides"}), builders.NOW)
    assert await find(store, "team=tides", project="demo") == (["run-1"], 1)
    row = await store.runs.get("run-1")
    assert row is not None and row.labels == {"team": "tides"}
    changed = {**own, "team": "ants", "crewyard.dev/schedule": "nightly"}
    await store.run_writer.observe(observed("run-1", labels=changed), builders.NOW)
    assert await find(store, "team=tides") == ([], 0)
    assert await find(store, "team=ants", "crewyard.dev/schedule=nightly") == (["run-1"], 1)
    await store.run_writer.observe(observed("run-1", "Succeeded", changed), builders.NOW)
    await store.run_writer.observe(observed("run-1", "Succeeded", {**own, "seen": ""}), builders.NOW)
    assert await find(store, "seen=", statuses=["succeeded"]) == (["run-1"], 1)
    assert await label_rows(store) == 1


async def test_label_moves_to_the_project_that_is_found_later(store: Store) -> None:
    await builders.add_demo_project(store)
    raw = observed("run-1", labels={"team": "tides"}, spec={}).raw
    metadata = {**raw["metadata"], "ownerReferences": []}
    early = Run({**raw, "status": {"phase": "Pending"}, "metadata": metadata})
    await store.run_writer.observe(early, builders.NOW)
    assert await find(store, "team=tides", project="demo") == ([], 0)
    await store.run_writer.set_deployment("run-1", "uid-of-run-1", "demo", "dep-a")
    assert await find(store, "team=tides", project="demo") == (["run-1"], 1)


async def test_withdrawn_and_deleted_runs_have_no_labels(store: Store) -> None:
    await builders.add_demo_project(store)
    withdrawn, kept = await add_run(store, 1, team="tides"), await add_run(store, 2, team="tides")
    await store.run_writer.observe(observed(kept, labels={"team": "tides"}), builders.NOW)
    assert await store.runs.withdraw(withdrawn, builders.NOW, object_absent=True)
    assert await find(store, "team=tides") == ([kept], 1)
    await store.projects.remove("demo", "project-1", builders.NOW)
    assert await label_rows(store) == 0


@pytest.mark.parametrize(
    ("label_counts", "matching", "total", "start"),
    [
        ([], None, 0, filtered_listing.CREATED),
        ([7, 10_000], None, 0, filtered_listing.LABEL),
        # One run in 50 matches: 100 of them are among the newest 5,000.
        ([], 2000, 100_000, filtered_listing.COLUMNS),
        ([], 2500, 100_000, filtered_listing.CREATED),
        ([10_000], 2000, 100_000, filtered_listing.COLUMNS),
        ([10_000], 2500, 100_000, filtered_listing.LABEL),
        # The label itself has fewer.
        ([4000], 2000, 100_000, filtered_listing.LABEL),
        ([4001, 10_000], 2000, 100_000, filtered_listing.COLUMNS),
        ([3, 10_000], 2, 100_000, filtered_listing.LABEL),
        ([1], 0, 1, filtered_listing.COLUMNS),
        ([0], 0, 1, filtered_listing.LABEL),
        ([], 0, 1, filtered_listing.COLUMNS),
    ],
)
def test_start_where_fewest_runs_are_read(
    label_counts: list[int], matching: int | None, total: int, start: str
) -> None:
    assert filtered_listing.choose(label_counts, matching, total) == start


@pytest.mark.parametrize(
    ("sampled", "oldest_sampled", "count"),
    [
        (0, 0, 0),
        (499, 1, 499),
        (500, 9501, 10_000),
        (500, 9001, 5000),
        (500, 1, 500),
        (500, 10_001, 5_000_000),
    ],
)
def test_number_of_runs_of_a_label_follows_from_its_newest(
    sampled: int, oldest_sampled: int, count: int
) -> None:
    assert filtered_listing.estimate(sampled, oldest_sampled, newest=10_000, total=10_000) == count


@pytest.mark.parametrize(
    "start", [filtered_listing.LABEL, filtered_listing.CREATED, filtered_listing.COLUMNS]
)
async def test_every_start_reads_an_index(store: Store, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    await builders.add_demo_project(store)
    for number in range(3):
        await add_run(store, number, team="t3", stage="test")
    labels = () if start == filtered_listing.CREATED else ("team=t3", "stage=test")
    monkeypatch.setattr(filtered_listing, "choose", lambda *_: start)
    asked: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    filters = {"created_after": builders.NOW, "statuses": ["pending"], "project": "demo"}
    names, _ = await find(store, *labels, **filters)
    event.remove(Engine, "before_cursor_execute", note)
    assert len(names) == 3
    selects = [one for one in asked if "run" in one[0] and one[0].lstrip().startswith(("SELECT", "WITH"))]
    assert len(selects) >= 2
    async with store.database.read() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if not is_sqlite:
            # The planner would scan an almost empty table, unless that is disabled.
            await connection.exec_driver_sql("SET enable_seqscan = off")
        for statement, parameters in selects:
            explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
            plan = (await connection.exec_driver_sql(explain + statement, tuple(parameters))).all()
            text = "\n".join(str(step) for step in plan)
            # What is scanned is the list of candidates or of orders that the statement has made itself.
            scans = [line for line in text.splitlines() if "SCAN " in line or "Seq Scan" in line]
            assert not [line for line in scans if " runs" in line or "run_labels" in line], text
            assert "(namespace=?)" not in text, text
