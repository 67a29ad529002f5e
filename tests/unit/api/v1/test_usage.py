"""Usage: each run and build counts once, on the day it ended."""

import asyncio
import csv
import io
import json
import sqlite3
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from api.prices import Prices, parse_prices
from api.store import accounting
from api.store.backend import INDEX
from api.store.index.deployments.build_times import EndedBuild, build_ms, ended_at
from api.store.index.usage import Measures
from api.store.logs.event_log import EventLog, NewEvent
from api.store.sql.migrate import migrate
from api.store.sql.schema import tombstones
from api.store.store import Store
from api.store.token_counts import TokenCounts
from api.v1.usage import view
from crds import objects
from tests.unit.api.conftest import NOW

DAY = NOW.date()


async def account_all(testbed):
    while await accounting.account_batch(testbed.store):
        pass


async def add_finished_run(testbed, run, *tokens):
    """Add a finished run of 90 s with an artifact and these usage events; a third value is the model."""
    raw = await testbed.add_run(run, "crew")
    await testbed.claim_run(raw)
    async with testbed.store.events.open_writer(run) as log:
        data = [
            {"model": model[0] if model else "m", "prompt_tokens": p, "completion_tokens": c}
            for p, c, *model in tokens
        ]
        await log.append([NewEvent(n, "usage", usage) for n, usage in enumerate(data, 1)])
    await testbed.add_artifact(run, "report.md", b"x" * 100)
    await testbed.finish_run(raw, "Succeeded", result={"output": "{}"}, durationMs=90_000)


async def test_ended_runs_are_counted_once(testbed):
    await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a", (100, 20), (1, 2))
    await add_finished_run(testbed, "run-b")
    await testbed.add_run("run-c", "crew")
    await account_all(testbed)
    await account_all(testbed)
    report = (await testbed.get("/v1/projects/crew/usage"))["data"]
    assert [report["from"], report["to"]] == [str(DAY - timedelta(days=29)), str(DAY)]
    assert len(report["days"]) == 30 and report["days"][-1]["date"] == str(DAY)
    assert {k: v for k, v in report["days"][-1].items() if k != "date"} == report["total"]
    assert report["total"] == {
        "runs": 2,
        "run_seconds": 180.0,
        "build_seconds": 0.0,
        "artifact_bytes": 200,
        "prompt_tokens": 101,
        "completion_tokens": 22,
        "cost": None,
    }
    assert report["models"] == {"m": {"prompt_tokens": 101, "completion_tokens": 22, "cost": None}}


async def test_days_end_at_midnight_utc(testbed):
    await testbed.add_project("crew")
    for run, at in (("run-a", "2026-11-21T23:59:59+00:00"), ("run-b", "2026-11-22T00:00:00+00:00")):
        testbed.clock[0] = NOW.fromisoformat(at)
        await add_finished_run(testbed, run)
    await account_all(testbed)
    report = (await testbed.get("/v1/projects/crew/usage?from=2026-11-21&to=2026-11-22"))["data"]
    assert [(day["date"], day["runs"]) for day in report["days"]] == [("2026-11-21", 1), ("2026-11-22", 1)]


async def test_recreated_project_has_no_old_usage(testbed):
    uid = await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a")
    await account_all(testbed)
    await testbed.add_run("run-b", "crew")
    await testbed.store.projects.remove("crew", uid, NOW)
    await testbed.add_project("crew")
    await account_all(testbed)
    assert (await testbed.get("/v1/projects/crew/usage"))["data"]["total"]["runs"] == 0


async def test_build_time_counts_and_reused_image_does_not(testbed, tmp_path):
    await testbed.add_project("crew")
    failed = {"type": "Built", "status": "False", "reason": "BuildFailed", "message": ""}
    conditions = [{**failed, "lastTransitionTime": "2099-01-01T00:00:00Z"}]
    for name in ("dep-built", "dep-reused"):
        raw = await testbed.add_deployment(name, "crew", "Pending")
        between = "Building" if name == "dep-built" else "Pending"
        for change in ({"phase": between}, {"phase": "Failed", "conditions": conditions}):
            await account_all(testbed)
            raw["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1000)
            raw["status"] |= change
            await testbed.store.deployments.observe(objects.Deployment(raw))
    await account_all(testbed)
    index = sqlite3.connect(tmp_path / INDEX)
    rows = index.execute("select name, building_at is not null, accounted from deployments order by name")
    assert rows.fetchall() == [("dep-built", 1, 1), ("dep-reused", 0, 1)]
    index.close()
    report = (await testbed.get("/v1/projects/crew/usage?from=2099-01-01&to=2099-01-01"))["data"]
    assert report["total"]["build_seconds"] > 0


async def test_deleted_build_counts_until_deletion(testbed):
    uid = await testbed.add_project("crew")
    raw = await testbed.add_deployment("dep-closed", "crew", "Building")
    await asyncio.sleep(0.05)
    await testbed.store.deployments.remove("dep-closed", raw["metadata"]["uid"])
    today = datetime.now(UTC).date()
    # The deletion may have been yesterday.
    period = (today - timedelta(days=1), today)
    days = await testbed.store.usage.days(uid, *period)
    assert sum(day.build_ms for day in days.values()) >= 50
    await account_all(testbed)
    assert await testbed.store.usage.days(uid, *period) == days


def test_build_end_is_transition_time_of_condition():
    built = {"type": "Built", "lastTransitionTime": "2026-11-21T11:00:00Z"}
    ready = {"type": "Ready", "lastTransitionTime": "2026-11-22T00:00:00Z"}
    build = EndedBuild("dep-a", NOW, (built, ready))
    ended = ended_at(build)
    assert (ended, build_ms(build, ended)) == (NOW + timedelta(hours=1), 3_600_000)
    assert ended_at(EndedBuild("dep-a", NOW, (ready,))) == NOW.replace(hour=0) + timedelta(days=1)
    assert build_ms(EndedBuild("dep-a", None, ()), ended) == 0
    assert build_ms(build, NOW - timedelta(hours=1)) == 0


async def test_invalid_token_counts_are_ignored(testbed, tmp_path):
    log = EventLog(tmp_path / "log")
    data = [
        {"prompt_tokens": 5, "completion_tokens": 7},
        {"prompt_tokens": -5, "completion_tokens": True},
        {"prompt_tokens": "5", "completion_tokens": 1e3},
        {"prompt_tokens": 10**30},
        {},
    ]
    log.append([NewEvent(n, "usage", usage) for n, usage in enumerate(data, 1)])
    log.append([NewEvent(6, "log", {"message": '"t":"usage"', "t": "usage", "prompt_tokens": 9})])
    assert log.tokens() == TokenCounts(5, 7)
    assert EventLog(tmp_path / "nothing").tokens() == TokenCounts()


async def test_csv(testbed):
    await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a", (10, 20))
    await account_all(testbed)
    status, body, headers = await testbed.call(
        "GET", f"/v1/projects/crew/usage?from={DAY}", headers={"Accept": "text/csv"}
    )
    assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    assert [(row["date"], row["runs"], row["prompt_tokens"], row["cost"]) for row in rows] == [
        (str(DAY), "1", "10", "")
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2026-11-22&to=2026-11-21", "from"),
        ("from=2025-11-20&to=2026-11-21", "from"),
        ("from=yesterday", "from"),
        ("from=2026-02-30", "from"),
        ("from=20261121", "from"),
        ("to=2026-W01-1", "to"),
        ("to=0000-01-01", "to"),
    ],
)
async def test_invalid_date_range_names_field(testbed, query, field):
    await testbed.add_project("crew")
    status, body, _ = await testbed.call("GET", f"/v1/projects/crew/usage?{query}")
    assert (status, body["error"]["details"]["field"]) == (400, field)
    if "yesterday" in query:
        assert body["error"]["message"] == "from must be a day such as 2026-11-21"


@pytest.mark.parametrize("query", ["to=0001-01-01", "to=9999-12-31", "from=2025-11-21&to=2026-11-21"])
async def test_extreme_date_range(testbed, query):
    await testbed.add_project("crew")
    assert (await testbed.get(f"/v1/projects/crew/usage?{query}"))["data"]["total"]["runs"] == 0


measures = st.builds(Measures, *[st.integers(0, 10**12)] * 6)


@given(st.lists(measures, max_size=5))
def test_total_is_sum_of_days(days):
    first = date(2026, 11, 1)
    used = {first + timedelta(days=n): day for n, day in enumerate(days)}
    report = view.report("a", first, first + timedelta(days=9), used, None)
    for name in ("runs", "artifact_bytes", "prompt_tokens", "completion_tokens"):
        assert sum(day[name] for day in report["days"]) == report["total"][name]


def test_cost():
    prices = parse_prices('{"currency": "EUR", "per_run_hour": 0.1, "per_million_prompt_tokens": 3}')
    assert prices == Prices("EUR", {"per_run_hour": Decimal("0.1"), "per_million_prompt_tokens": Decimal(3)})
    assert prices.cost(Measures(runs=5, run_ms=3 * 3_600_000, prompt_tokens=1_000)) == 0.303
    assert parse_prices("") is None


PRICES_OF_MODELS = {
    "currency": "USD",
    "per_million_prompt_tokens": 1,
    "models": {
        "gpt-4o": {"per_million_prompt_tokens": 2.5, "per_million_completion_tokens": 10},
        "gpt-4o-mini": {"per_million_prompt_tokens": 0.15},
        "azure/gpt": {"per_million_prompt_tokens": 0},
    },
}


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("gpt-4o", 12.5),
        ("gpt-4o-2024-08-06", 12.5),
        ("gpt-4o-mini-2024-07-18", 0.15),
        ("openai/gpt-4o", 12.5),
        ("openrouter/openai/gpt-4o", 12.5),
        ("azure/gpt-4o", 0),
        ("gpt-4", 1),
        ("GPT-4o", 1),
        ("gpt-4/o", 1),
        ("", 1),
    ],
)
def test_a_model_has_the_price_of_its_longest_entry(model, cost):
    prices = parse_prices(json.dumps(PRICES_OF_MODELS))
    assert prices.cost_of_tokens(model, 1_000_000, 1_000_000) == cost
    assert prices.as_json() == PRICES_OF_MODELS


def test_tokens_without_a_known_model_have_the_general_prices():
    prices = parse_prices(json.dumps(PRICES_OF_MODELS))
    models = {"gpt-4o": (1_000_000, 2_000_000), "gpt-4": (3_000_000, 9)}
    used = Measures(prompt_tokens=9_000_000, completion_tokens=5_000_000, models=models)
    # 1 million at 2.5, 2 at 10, the other 8 at 1.
    assert prices.cost(used) == 2.5 + 20 + 8
    assert prices.cost(Measures(prompt_tokens=9_000_000, completion_tokens=5_000_000)) == 9


models = st.dictionaries(
    st.sampled_from(["gpt-4o", "gpt-4o-mini", "x"]), st.tuples(*[st.integers(0, 10**9)] * 2)
)


@given(models, models)
def test_a_sum_costs_what_its_parts_cost(first, second):
    prices = parse_prices(json.dumps(PRICES_OF_MODELS))
    parts = [
        Measures(
            prompt_tokens=sum(p for p, _ in part.values()),
            completion_tokens=sum(c for _, c in part.values()),
            models=part,
        )
        for part in (first, second)
    ]
    costs = [prices.cost(part) for part in parts]
    assert prices.cost(parts[0] + parts[1]) == pytest.approx(sum(costs), abs=3e-6)
    calls = [prices.cost_of_tokens(name, *tokens) for name, tokens in first.items()]
    assert costs[0] == pytest.approx(sum(calls), abs=3e-6)


def test_a_table_of_models_alone_leaves_others_without_a_price():
    prices = parse_prices('{"currency": "USD", "models": {"m": {"per_million_prompt_tokens": 0}}}')
    assert (prices.cost_of_tokens("m", 5, 5), prices.cost_of_tokens("n", 5, 5)) == (0, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ("[]", "currency"),
        ("{}", "currency"),
        ('{"currency": "USD", "per_hour": 1}', "per_hour"),
        ('{"currency": "USD", "per_run": -1}', "per_run"),
        ('{"currency": "USD", "per_run": true}', "per_run"),
        ('{"currency": "USD", "per_run": "1"}', "per_run"),
        ('{"currency": "USD", "per_run": NaN}', "per_run"),
        ('{"currency": "USD", "per_run": 1e30}', "per_run"),
        ('{"currency": "USD", "models": []}', "models must have"),
        ('{"currency": "USD", "models": {"": {"per_million_prompt_tokens": 1}}}', "models must have"),
        ('{"currency": "USD", "models": {"m": 2}}', "models must have"),
        ('{"currency": "USD", "models": {"m": {}}}', "models must have"),
        (
            '{"currency": "USD", "models": {"m": {"per_run": 1}}}',
            "'per_run' of model 'm'; use per_million_prompt_tokens",
        ),
        (
            '{"currency": "USD", "models": {"m": {"per_million_prompt_tokens": -1}}}',
            "per_million_prompt_tokens of model 'm' must be",
        ),
    ],
)
def test_invalid_prices_are_refused(text, word):
    with pytest.raises(ValueError, match=word):
        parse_prices(text)


async def test_index_of_first_version_is_migrated_and_accounted(tmp_path):
    migrate(tmp_path / INDEX, "0001")
    old = sqlite3.connect(tmp_path / INDEX)
    ended = int(NOW.timestamp() * 1_000_000)
    old.execute(
        "insert into projects values ('crews', 'crew', 'uid-1', 1, 1, ?, null, null, '{}', '{}')", (ended,)
    )
    columns = "namespace name uid ord version project project_uid deployment status hidden withdrawn present"
    rest = "created_at completed_at duration_ms input cancel terminal terminal_id"
    values = ("crews", "run-a", "u", 2, 2, "crew", "uid-1", "dep-a", "succeeded", 0, 0, 0, ended, ended, 1500)
    names = f"{columns} {rest}".replace(" ", ", ")
    marks = ", ".join("?" * 19)
    terminal = '{"type": "run.completed", "data": {}}'
    old.execute(f"insert into runs ({names}) values ({marks})", (*values, "{}", 0, terminal, 1))
    # As an old version left live runs of a deleted project.
    text = "2026-11-21 10:00:00.123456"
    removed = (*values[:1], "run-b", *values[2:9], 1, 0, 0, ended, text, None)
    old.execute(f"insert into runs ({names}) values ({marks})", (*removed, "{}", 0, None, None))
    old.execute(
        "insert into api_keys (namespace, id, hash, name, scopes, plan, created_at) "
        "values ('crews', 'k', 'h', 'ci', '[\"read\"]', 'pro', ?)",
        (ended,),
    )
    old.commit()
    old.close()
    store = await Store.open(tmp_path, "crews")
    assert (await store.runs.get("run-a")).duration_ms == 1500
    assert (await store.keys.get("k")).plan == "pro"
    assert await accounting.account_batch(store) == 1
    assert await accounting.account_batch(store) == 0
    assert await store.usage.days("uid-1", DAY, DAY) == {DAY: Measures(runs=1, run_ms=1500)}
    async with store.database.read() as connection:
        stones = (await connection.execute(select(tombstones.c.name, tombstones.c.ended_at))).all()
    assert stones == [("run-b", datetime(2026, 11, 21, 10, tzinfo=UTC))]
    await store.close()
