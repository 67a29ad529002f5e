"""What a run used, in the list and on its own: tokens, bytes of artifacts, cost."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import update

from api.maintenance.seal_logs import LogSealer
from api.store import accounting
from api.store.index.log_archives import ArchiveRow
from api.store.sql.schema import runs
from tests.unit.api.conftest import NOW
from tests.unit.api.v1.test_usage import account_all, add_finished_run

PRICES = {"currency": "USD", "per_run": 1, "per_run_hour": 4, "per_million_prompt_tokens": 1000}
USED = {"prompt_tokens": 101, "completion_tokens": 22, "artifact_bytes": 100}
LATER = NOW + timedelta(days=1)


@pytest.fixture
def settings(request):
    prices = getattr(request, "param", None)
    return {"CREWYARD_PRICES": json.dumps(PRICES if prices is True else prices)} if prices else {}


async def listed(testbed):
    return {row["id"]: row["usage"] for row in (await testbed.get("/v1/runs"))["data"]}


async def test_usage_appears_once_a_run_is_accounted(testbed):
    await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a", (100, 20), (1, 2))
    await testbed.add_run("run-b", "crew")
    assert await listed(testbed) == {"run_a": None, "run_b": None}
    await account_all(testbed)
    models = {"m": {"prompt_tokens": 101, "completion_tokens": 22, "cost": None}}
    expected = {**USED, "cost": None, "currency": None, "models": models}
    assert await listed(testbed) == {"run_a": expected, "run_b": None}
    assert (await testbed.get("/v1/runs/run_a"))["data"]["usage"] == expected


@pytest.mark.parametrize("settings", [True], indirect=True)
async def test_cost_is_that_of_the_run(testbed):
    await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a", (100, 20), (1, 2))
    await account_all(testbed)
    # One run, 90 s of an hour at 4, 101 tokens.
    models = {"m": {"prompt_tokens": 101, "completion_tokens": 22, "cost": 0.101}}
    expected = {"run_a": {**USED, "cost": 1 + 0.1 + 0.101, "currency": "USD", "models": models}}
    assert await listed(testbed) == expected
    total = (await testbed.get("/v1/projects/crew/usage"))["data"]["total"]
    assert total["cost"] == expected["run_a"]["cost"]


OF_MODELS = {
    "currency": "USD",
    "per_million_prompt_tokens": 1000,
    "models": {"large": {"per_million_prompt_tokens": 50_000, "per_million_completion_tokens": 100_000}},
}


@pytest.mark.parametrize("settings", [OF_MODELS], indirect=True)
async def test_each_model_has_its_tokens_and_its_price(testbed):
    await testbed.add_project("crew", {"budget": {"month": {"cost": 100}}})
    await add_finished_run(
        testbed, "run-a", (100, 20, "any/large-2"), (1, 2), (100, 0, None), (5, 5, "m"), (9, 0, "\ud800")
    )
    await account_all(testbed)
    usage = (await listed(testbed))["run_a"]
    # 100 at 0.05 and 20 at 0.1, 115 at 0.001.
    assert usage["cost"] == 5 + 2 + 0.115
    assert usage["models"] == {
        "any/large-2": {"prompt_tokens": 100, "completion_tokens": 20, "cost": 7.0},
        "m": {"prompt_tokens": 6, "completion_tokens": 7, "cost": 0.006},
        "?": {"prompt_tokens": 9, "completion_tokens": 0, "cost": 0.009},
    }
    assert (await testbed.get("/v1/runs/run_a"))["data"]["usage"] == usage
    report = (await testbed.get("/v1/projects/crew/usage"))["data"]
    assert report["models"] == usage["models"] and report["prices"] == OF_MODELS
    assert report["total"]["cost"] == report["days"][-1]["cost"] == usage["cost"]
    assert report["budget"]["cost"] == {"used": usage["cost"], "limit": 100}
    assert [row["cost"] for row in (await testbed.get("/v1/usage"))["data"]] == [usage["cost"]]


@pytest.fixture
async def accounted_before(testbed):
    """Three runs as a version before these columns accounted them: one is archived, one reported nothing."""
    await testbed.add_project("crew")
    await add_finished_run(testbed, "run-a", (100, 20), (1, 2))
    await add_finished_run(testbed, "run-b", *[(1, 1)] * 1500)
    await add_finished_run(testbed, "run-c")
    await account_all(testbed)
    store = testbed.store
    await LogSealer(store).run_once(LATER, LATER)
    assert isinstance(await store.archives.find("run-b"), ArchiveRow)
    # An open log beside the archived ones.
    await add_finished_run(testbed, "run-d", (5, 6))
    await account_all(testbed)
    await clear_usage(store)
    return testbed


async def clear_usage(store):
    async with store.database.write() as connection:
        columns = ("prompt_tokens", "completion_tokens", "artifact_bytes", "model_tokens")
        await connection.execute(update(runs).values(dict.fromkeys(columns)))


async def test_usage_of_earlier_runs_is_filled_in_by_batches(accounted_before, monkeypatch):
    monkeypatch.setattr(accounting, "BATCH_SIZE", 3)
    testbed = accounted_before
    before = (await testbed.get("/v1/projects/crew/usage"))["data"]["total"]
    below = await accounting.measure_batch(testbed.store)
    found = await listed(testbed)
    assert [name for name, usage in found.items() if usage is None] == ["run_a"]
    below = await accounting.measure_batch(testbed.store, below)
    assert await accounting.measure_batch(testbed.store, below) is None
    tokens = {
        name: (used["prompt_tokens"], used["completion_tokens"])
        for name, used in (await listed(testbed)).items()
    }
    assert tokens == {"run_a": (101, 22), "run_b": (1500, 1500), "run_c": (0, 0), "run_d": (5, 6)}
    names = {name: [*used["models"]] for name, used in (await listed(testbed)).items()}
    assert names == {"run_a": ["m"], "run_b": ["m"], "run_c": [], "run_d": ["m"]}
    assert {used["artifact_bytes"] for used in (await listed(testbed)).values()} == {100}
    # Nothing is counted again for the project.
    assert (await testbed.get("/v1/projects/crew/usage"))["data"]["total"] == before


async def test_one_lost_log_keeps_only_its_own_usage_unknown(accounted_before):
    store = accounted_before.store
    archive = await store.archives.find("run-b")
    await store.blobs.delete([archive.blob])
    below = await accounting.measure_batch(store)
    assert await accounting.measure_batch(store, below) is None
    found = await listed(accounted_before)
    assert [name for name, usage in found.items() if usage is None] == ["run_b"]
