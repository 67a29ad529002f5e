"""The budget of a run: what counts, when it warns, and how the real runner stops a crew above it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.prices import parse_prices
from runner.pid1.budget import RunBudget, token_rates, usage_of

PRICES = {
    "currency": "EUR", "per_run": 1, "per_run_hour": 36, "per_build_hour": 5,
    "per_million_prompt_tokens": 1_000_000, "per_million_completion_tokens": 2_000_000,
}  # fmt: skip
CALLS = """
import time
from crewyard_runtime import emit
def kickoff(inputs):
    for number in range(inputs["calls"]):
        emit("usage", model="m", prompt_tokens=90, completion_tokens=10)
        print(number)
        time.sleep(0.05)
    return "done"
"""


def of_type(api: Any, kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in api.events if event["type"] == kind]


@pytest.mark.parametrize("granted", [None, {}, [], {"tokens": "9", "cost": True}, {"cost": 1}])
def test_without_a_limit_nothing_is_exceeded(granted: object) -> None:
    budget = RunBudget(granted)
    assert budget.count("m", 10**9, 10**9, 10**6) is None
    assert (budget.exceeded, budget.seconds_to_change(0)) == (None, float("inf"))


def test_it_warns_once_and_exceeds_above_the_limit() -> None:
    budget = RunBudget({"tokens": 1000})
    assert budget.count("m", 700, 99, 1.0) is None
    warning = budget.count("m", 1, 0, 1.0)
    assert warning == {
        "tokens": {"used": 800, "limit": 1000},
        "cost": {"used": None, "limit": None},
        "message": "the run has used 800 of 1,000 tokens of its budget; above it, it is stopped",
    }
    assert budget.count("m", 0, 200, 1.0) is None and budget.exceeded is None
    assert budget.count("m", 0, 1, 1.0) is None
    assert budget.exceeded == (
        "The run was stopped above its budget: it used 1,001 of 1,000 tokens. Raise `budget.run` of the "
        "project, or give the crew less work."
    )


def test_a_budget_of_nothing_allows_runs_without_a_model_call() -> None:
    budget = RunBudget({"tokens": 0})
    assert budget.check(5.0) is None and budget.exceeded is None
    budget.count("m", 1, 0, 5.0)
    assert budget.exceeded


def test_the_cost_is_of_the_run_its_time_and_its_tokens() -> None:
    budget = RunBudget({"cost": 10.5, "prices": PRICES})
    assert budget.count("m", 1, 2, 100.0) is None  # 1 + 1 + 5
    # At 8.4, 80 %, 240 s after the start.
    assert budget.seconds_to_change(100.0) == pytest.approx(140.01)
    assert budget.check(239.0) is None
    warning = budget.check(240.01)
    assert warning is not None and warning["cost"] == {"used": 8.4001, "limit": 10.5}
    assert budget.seconds_to_change(240.0) == pytest.approx(210.01)
    assert budget.check(449.0) is None and budget.exceeded is None
    assert budget.check(450.01) is None
    assert budget.exceeded is not None and "it used 10.5001 of the cost 10.5." in budget.exceeded
    assert budget.seconds_to_change(451.0) == float("inf")


@pytest.mark.parametrize("value", [-1, True, 1.5, "5", None, 10**9 + 1])
def test_only_counts_that_the_service_counts_are_counted(value: object) -> None:
    assert usage_of({"model": "m", "prompt_tokens": value, "completion_tokens": 7}) == ("m", 0, 7)


@pytest.mark.parametrize("model", [None, 5, ["m"], {}])
def test_a_model_without_a_name_has_the_general_prices(model: object) -> None:
    assert usage_of({"model": model, "prompt_tokens": 1}) == ("", 1, 0)


def test_the_tokens_of_a_model_cost_its_own_price() -> None:
    models = {
        "m": {"per_million_prompt_tokens": 5_000_000, "per_million_completion_tokens": 0},
        "m-large": {"per_million_prompt_tokens": 7},
    }
    budget = RunBudget({"cost": 100, "prices": {**PRICES, "models": models}})
    # 1 for the run, 2 x 5, 10 x 0, 3 x 1, 4 x 2
    assert budget.count("m", 2, 10, 0.0) is None
    assert budget.count("other", 3, 4, 0.0) is None
    warning = budget.count("openai/m-large-2", 0, 39, 0.0)
    assert warning is not None and warning["cost"] == {"used": 100, "limit": 100}
    assert budget.exceeded is None
    budget.count("m", 1, 0, 0.0)
    assert budget.exceeded is not None and "it used 105 of the cost 100." in budget.exceeded


@pytest.mark.parametrize(
    "models", [None, [], {"m": None}, {"m": {"per_million_prompt_tokens": True}}, {"m": {"cost": 1}}]
)
def test_prices_of_another_form_never_stop_a_run(models: object) -> None:
    budget = RunBudget({"cost": 1, "prices": {"currency": "EUR", "models": models}})
    assert budget.count("m", 1, 1, 0.0) is None and budget.exceeded is None


names = st.text("ab/", max_size=6)
rates = st.dictionaries(
    st.sampled_from(["per_million_prompt_tokens", "per_million_completion_tokens"]),
    st.integers(1, 9),
    min_size=1,
)


@given(names, st.dictionaries(st.text("ab/", min_size=1, max_size=6), rates, max_size=5))
def test_runner_and_api_server_price_a_model_alike(name: str, models: dict[str, dict[str, int]]) -> None:
    table = {"currency": "EUR", "per_million_prompt_tokens": 11, "models": models}
    prices = parse_prices(json.dumps(table))
    assert prices is not None
    prompt, completion = token_rates(prices.as_json(), name)
    assert prices.cost_of_tokens(name, 10**6, 0) == prompt
    assert prices.cost_of_tokens(name, 0, 10**6) == completion


async def test_a_crew_above_its_tokens_is_stopped(pod: Any, api: Any) -> None:
    api.settings = {"budget": {"tokens": 300}}
    api.input = {"calls": 1000}
    pod.crew(CALLS)
    ended = await pod.run()
    assert (ended.code, api.result["outcome"], api.result["reason"]) == (0, "failed", "BudgetExceeded")
    assert "of 300 tokens" in api.result["message"]
    [warning] = of_type(api, "budget.warning")
    assert warning["tokens"] == {"used": 300, "limit": 300}
    # The warning follows the call that caused it.
    kinds = [event["type"] for event in api.events if event["type"] != "log"]
    assert kinds[:4] == ["usage", "usage", "usage", "budget.warning"]
    assert 4 <= kinds.count("usage") < 1000


async def test_a_crew_at_its_budget_succeeds(pod: Any, api: Any) -> None:
    api.settings, api.input = {"budget": {"tokens": 1000}}, {"calls": 10}
    pod.crew(CALLS)
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "done")
    assert len(of_type(api, "budget.warning")) == 1


@pytest.mark.parametrize(
    "crew",
    [
        # It returns before it could be stopped.
        "from crewyard_runtime import emit\n"
        "def kickoff():\n"
        "    emit('usage', prompt_tokens=11, completion_tokens=0)\n"
        "    return 'done'",
        # It takes SIGTERM as a reason to return.
        "import time\nfrom crewyard_runtime import emit\n"
        "def kickoff():\n"
        "    emit('usage', prompt_tokens=11, completion_tokens=0)\n"
        "    try:\n        time.sleep(100)\n"
        "    except BaseException:\n        return 'done'",
        # It exits.
        "import os\nfrom crewyard_runtime import emit\n"
        "def kickoff():\n"
        "    emit('usage', prompt_tokens=11, completion_tokens=0)\n"
        "    os._exit(0)",
    ],
)
async def test_a_crew_above_its_budget_fails_however_it_ends(pod: Any, api: Any, crew: str) -> None:
    api.settings = {"budget": {"tokens": 10}}
    pod.crew(crew)
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "BudgetExceeded")


async def test_time_alone_exceeds_a_budget_of_cost(pod: Any, api: Any) -> None:
    prices = {"currency": "EUR", "per_run_hour": 3600}
    api.settings = {"budget": {"cost": 0.5, "prices": prices}}
    pod.crew("import time\ndef kickoff():\n    time.sleep(100)")
    ended = await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "BudgetExceeded")
    assert "of the cost 0.5." in api.result["message"] and ended.seconds < 60
    [warning] = of_type(api, "budget.warning")
    assert warning["cost"]["used"] >= 0.4 and warning["cost"]["limit"] == 0.5


async def test_a_crew_cannot_emit_the_warning(pod: Any, api: Any) -> None:
    pod.crew(
        """
        from crewyard_runtime import emit
        def kickoff():
            try:
                emit("budget.warning", message="no")
            except ValueError:
                return "refused"
        """
    )
    await pod.run()
    assert api.result["output"] == "refused" and of_type(api, "budget.warning") == []
