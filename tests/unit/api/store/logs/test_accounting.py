"""Accounting while a log or the index cannot be read."""

from typing import Any

import pytest
from sqlalchemy import func, select

from api.store.accounting import account_batch
from api.store.errors import StoreUnavailable
from api.store.postponed_runs import PostponedRuns
from api.store.sql.schema import deployments, runs
from api.store.store import Store
from api.store.token_counts import TokenCounts
from tests.unit.api.store import builders


async def end_run(store: Store) -> str:
    run = await builders.claim_run(store)
    ended = {"completionTime": builders.later(5).isoformat().replace("+00:00", "Z")}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.later(5))
    return run


async def accounted(store: Store, table: Any) -> int:
    query = select(func.count()).select_from(table).where(table.c.accounted.is_(True))
    async with store.database.read() as connection:
        return int((await connection.execute(query)).scalar_one())


@pytest.fixture
async def unreadable(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three ended runs, of which the log of the first cannot be read, and a failed build."""
    await builders.add_demo_project(store)
    names = [await end_run(store) for _ in range(3)]
    await account_builds(store)
    await store.deployments.observe(builders.deployment("dep-b", "Failed"))
    found, tokens = names[:1], store.events.tokens

    async def read(run: str) -> TokenCounts:
        if run in found:
            raise StoreUnavailable("the log cannot be read")
        return await tokens(run)

    monkeypatch.setattr(store.events, "tokens", read)
    return found


async def account_builds(store: Store) -> None:
    for build in await store.usage.ended_builds(9):
        await store.usage.account_build(build.name, builders.NOW, 0)


async def test_an_unreadable_log_blocks_no_other_run_and_no_build(
    store: Store, unreadable: list[str]
) -> None:
    postponed = PostponedRuns()
    assert await account_batch(store, postponed, builders.NOW) == 3
    assert (await accounted(store, runs), await accounted(store, deployments)) == (2, 2)
    assert [*postponed.names(builders.NOW)] == unreadable
    # Left out, then tried again.
    assert await account_batch(store, postponed, builders.later(599)) == 0
    with pytest.raises(StoreUnavailable, match="no run can be accounted"):
        await account_batch(store, postponed, builders.later(600))
    unreadable.clear()
    assert await account_batch(store, postponed, builders.later(1200)) == 1
    assert (await accounted(store, runs), [*postponed.names(builders.later(599))]) == (3, [])


async def test_an_index_that_is_away_leaves_no_run_out(
    store: Store, unreadable: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnavailable("the index is away")

    monkeypatch.setattr(store.database, "ready", away)
    postponed = PostponedRuns()
    with pytest.raises(StoreUnavailable, match="the index is away"):
        await account_batch(store, postponed, builders.NOW)
    assert [*postponed.names(builders.NOW)] == []
