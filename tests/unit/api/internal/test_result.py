"""The result of a run: refused while acknowledged data is missing, then stored and written once."""

from typing import Any

import pytest

from api.store.store import Store
from tests.unit.api.internal.conftest import FakeObjects, Mint, Pods
from tests.unit.api.internal.test_runs import HOLDER, call_api, make_event, put_artifact
from tests.unit.api.store import builders

STORED_EVENTS = 3
STORED_ARTIFACTS = 2


def make_result(last_event: int, artifacts: int) -> dict[str, Any]:
    counts = {"count": artifacts, "bytes": 0}
    return {**HOLDER, "outcome": "succeeded", "duration_ms": 1, "last_event": last_event, "artifacts": counts}


async def add_data(pods: Pods, store: Store, bearer: Mint) -> str:
    """Return a claimed run with stored events and artifacts."""
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    events = {**HOLDER, "events": [make_event(seq) for seq in range(1, STORED_EVENTS + 1)]}
    assert (await call_api(pods, run, "events", events, bearer(run)))[0] == 200
    for number in range(STORED_ARTIFACTS):
        assert (await put_artifact(pods, run, f"{number}.txt", b"x", bearer(run)))[0] == 200
    return run


@pytest.mark.parametrize(
    ("last_event", "artifacts", "missing"),
    [
        (STORED_EVENTS + 1, STORED_ARTIFACTS, {"events": {"stored": 3, "expected": 4}}),
        (STORED_EVENTS, STORED_ARTIFACTS + 1, {"artifacts": {"stored": 2, "expected": 3}}),
        (9, 9, {"events": {"stored": 3, "expected": 9}, "artifacts": {"stored": 2, "expected": 9}}),
    ],
)
async def test_result_is_refused_while_data_is_missing(
    pods: Pods, store: Store, bearer: Mint, last_event: int, artifacts: int, missing: dict[str, Any]
) -> None:
    run = await add_data(pods, store, bearer)
    status, response = await call_api(pods, run, "result", make_result(last_event, artifacts), bearer(run))
    assert (status, response["missing"]) == (425, missing)
    claim = await store.claims.get(run)
    assert claim is not None and claim.result is None


async def test_result_is_accepted_once_all_data_is_stored(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects
) -> None:
    run = await add_data(pods, store, bearer)
    objects.accepts_writes = True
    result = make_result(STORED_EVENTS, STORED_ARTIFACTS)
    assert await call_api(pods, run, "result", result, bearer(run)) == (200, {})
    claim = await store.claims.get(run)
    assert claim is not None and claim.result is not None
    assert (claim.result["outcome"], claim.result["artifacts"]["count"]) == ("succeeded", STORED_ARTIFACTS)
    assert await store.claims.unwritten(10) == ()
