"""The budget of a run at the internal API: what the grant has, and what is counted."""

from typing import Any

import pytest

from api.prices import Prices, parse_prices
from api.store.store import Store
from tests.unit.api.internal.conftest import Mint, Pods
from tests.unit.api.internal.test_runs import CLAIM, HOLDER, call_api
from tests.unit.api.store import builders

PRICES = parse_prices('{"currency": "EUR", "per_run_hour": 2, "per_million_prompt_tokens": 0.5}')
SENT = {"currency": "EUR", "per_run_hour": 2.0, "per_million_prompt_tokens": 0.5}

PRICES_OF_MODELS = parse_prices(
    '{"currency": "EUR", "models": {"gpt-4o": {"per_million_prompt_tokens": 2.5}}}'
)
SENT_WITH_MODELS = {"currency": "EUR", "models": {"gpt-4o": {"per_million_prompt_tokens": 2.5}}}


async def granted(pods: Pods, store: Store, bearer: Mint, budget: Any) -> tuple[str, dict[str, Any]]:
    """Return a run of a project with this budget, and the grant of its claim."""
    await store.projects.observe(builders.project(active="dep-a", **({"budget": budget} if budget else {})))
    await store.deployments.observe(builders.deployment())
    run = await builders.create_run(store)
    _, grant = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert grant["state"] == "granted"
    return run, grant


@pytest.mark.parametrize(
    ("prices", "budget", "sent"),
    [
        (PRICES, None, None),
        (PRICES, {"month": {"tokens": 5}}, None),
        (PRICES, {"run": {}}, None),
        (None, {"run": {"tokens": 5}}, {"tokens": 5}),
        (PRICES, {"run": {"tokens": 0}}, {"tokens": 0}),
        (PRICES, {"run": {"tokens": 5, "cost": 1.5}}, {"tokens": 5, "cost": 1.5, "prices": SENT}),
        (PRICES, {"run": {"cost": 0}}, {"cost": 0, "prices": SENT}),
        (PRICES_OF_MODELS, {"run": {"cost": 2}}, {"cost": 2, "prices": SENT_WITH_MODELS}),
        # A limit of cost has no effect without prices.
        (None, {"run": {"tokens": 5, "cost": 1.5}}, {"tokens": 5}),
        (None, {"run": {"cost": 1.5}}, None),
    ],
)
async def test_the_grant_has_the_budget_of_the_project(
    pods: Pods, store: Store, bearer: Mint, prices: Prices | None, budget: Any, sent: Any
) -> None:
    _, grant = await granted(pods, store, bearer, budget)
    assert grant.get("budget") == sent


@pytest.mark.parametrize(
    ("reason", "counted"), [("BudgetExceeded", [("run_budget", "demo")]), ("CrewError", [])]
)
async def test_a_run_above_its_budget_is_counted(
    pods: Pods, store: Store, bearer: Mint, objects: Any, reached: Any, reason: str, counted: Any
) -> None:
    objects.accepts_writes = True
    run, _ = await granted(pods, store, bearer, {"run": {"tokens": 5}})
    result = {"outcome": "failed", "reason": reason, "message": "no", "duration_ms": 1, "last_event": 0}
    body = {**HOLDER, **result, "artifacts": {"count": 0, "bytes": 0}}
    assert (await call_api(pods, run, "result", body, bearer(run)))[0] == 200
    assert reached == counted
