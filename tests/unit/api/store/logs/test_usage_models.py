"""Usage by model in the index: of a run, of a day, and what an earlier version left."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from api.prices import parse_prices
from api.store.index.usage import AMOUNTS, Measures, used_by
from api.store.sql.schema import usage_models
from api.store.store import Store
from api.store.token_counts import MAX_MODELS, OTHER_MODELS, TokenCounts
from tests.unit.api.store import builders
from tests.unit.api.store.old_index import old_index

DAY = builders.NOW.date()
PRICES = parse_prices(
    '{"currency": "EUR", "per_million_prompt_tokens": 1000000,'
    ' "models": {"a": {"per_million_prompt_tokens": 3000000}}}'
)


async def account(store: Store, models: dict[str, tuple[int, int]], seconds: float = 5) -> str:
    """Account a new run that ends after these seconds and used these tokens."""
    run = await builders.claim_run(store)
    end = builders.later(seconds).isoformat().replace("+00:00", "Z")
    await store.run_writer.observe(builders.run(run, "Succeeded", completionTime=end), builders.NOW)
    counts = TokenCounts(sum(p for p, _ in models.values()), sum(c for _, c in models.values()), models)
    await store.usage.account_run(run, counts)
    return run


async def test_a_day_has_the_sum_of_each_model(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await account(store, {"a": (1, 2), "odd\0\ue000": (3, 4)})
    await account(store, {"a": (10, 20)})
    await account(store, {})
    await account(store, {"b": (5, 6)}, 24 * 3600)
    row = await store.runs.get(run)
    assert row is not None and (used := used_by(row)) is not None
    assert used.models == {"a": (1, 2), "odd\0\ue000": (3, 4)}
    next_day = DAY + timedelta(days=1)
    days = await store.usage.days("project-1", DAY, next_day)
    assert days[DAY].models == {"a": (11, 22), "odd\0\ue000": (3, 4)}
    assert (days[DAY].runs, days[DAY].prompt_tokens) == (3, 14)
    assert days[next_day].models == {"b": (5, 6)}
    total = await store.usage.totals(["project-1", "project-2"], DAY, next_day)
    assert total == {"project-1": days[DAY] + days[next_day]}
    assert (await store.usage.totals(["project-1"], DAY, DAY))["project-1"] == days[DAY]
    assert PRICES is not None and PRICES.cost(days[DAY]) == 14 + 2 * 11


async def test_a_day_keeps_the_first_names(store: Store) -> None:
    await builders.add_demo_project(store)
    for start in range(0, MAX_MODELS + 5, 5):
        await account(store, {f"m{number}": (1, 0) for number in range(start, start + 5)})
    await account(store, {"m0": (1, 1), "more": (1, 1)})
    used = (await store.usage.days("project-1", DAY, DAY))[DAY]
    assert used.models == {
        "m0": (2, 1),
        **{f"m{number}": (1, 0) for number in range(1, MAX_MODELS)},
        OTHER_MODELS: (6, 1),
    }


async def test_a_deleted_project_leaves_no_usage_by_model(store: Store) -> None:
    await builders.add_demo_project(store)
    await account(store, {"a": (1, 2)})
    await store.projects.remove("demo", "project-1", builders.NOW)
    async with store.database.read() as connection:
        assert (await connection.execute(select(usage_models))).all() == []


@pytest.mark.parametrize(("more", "cost"), [({}, 7), ({"a": (2, 0)}, 7 + 6)])
async def test_usage_of_an_earlier_version_has_the_general_prices(
    tmp_path: Path, empty_database: str | None, more: dict[str, tuple[int, int]], cost: float
) -> None:
    async with old_index(tmp_path, empty_database, "0017") as connection:
        used = dict.fromkeys(AMOUNTS, 0) | {"prompt_tokens": 7}
        names = ", ".join(used)
        await connection.execute(
            text(
                f"insert into usage_days (namespace, project_uid, day, {names}) "
                f"values ('crews', 'project-1', '{DAY}', {', '.join(map(str, used.values()))})"
            )
        )
    store = await Store.open(tmp_path, "crews", empty_database)
    days = await store.usage.days("project-1", DAY, DAY)
    assert days == {DAY: Measures(prompt_tokens=7)}
    await builders.add_demo_project(store)
    if more:
        await account(store, more)
    assert PRICES is not None
    assert PRICES.cost((await store.usage.days("project-1", DAY, DAY))[DAY]) == cost
    await store.close()
