"""Usage of projects as JSON and CSV, and the state of their budgets."""

from datetime import date

import pytest

from api.prices import parse_prices
from api.store.index.usage import Measures
from api.v1.usage import view
from crds.objects import Project
from crds.runs.budget import MonthUse
from tests.unit.api.conftest import NOW

FIRST, LAST = date(2026, 10, 31), date(2026, 11, 2)
PRICES = parse_prices('{"currency": "EUR", "per_run": 2}')
USED = Measures(2, 1500, 2500, 7, 11, 13, models={"a": (9, 2)})
NOTHING = {
    "runs": 0,
    "run_seconds": 0.0,
    "build_seconds": 0.0,
    "artifact_bytes": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
}
AMOUNTS = {
    "runs": 2,
    "run_seconds": 1.5,
    "build_seconds": 2.5,
    "artifact_bytes": 7,
    "prompt_tokens": 11,
    "completion_tokens": 13,
}
SUBJECT = {"project": "demo", "from": "2026-10-31", "to": "2026-11-02"}


@pytest.mark.parametrize(
    ("prices", "currency", "shown", "none", "cost", "csv_cost"),
    [
        (None, None, None, None, None, ""),
        (PRICES, "EUR", {"currency": "EUR", "per_run": 2.0}, 0.0, 4.0, "4.0"),
    ],
)
def test_report_has_each_day_and_the_total(prices, currency, shown, none, cost, csv_cost):
    report = view.report("demo", FIRST, LAST, {date(2026, 11, 1): USED}, prices)
    assert report == {
        **SUBJECT,
        "currency": currency,
        "prices": shown,
        "days": [
            {"date": "2026-10-31", **NOTHING, "cost": none},
            {"date": "2026-11-01", **AMOUNTS, "cost": cost},
            {"date": "2026-11-02", **NOTHING, "cost": none},
        ],
        "total": {**AMOUNTS, "cost": cost},
        "models": {"a": {"prompt_tokens": 9, "completion_tokens": 2, "cost": None}},
    }
    assert view.project_item("demo", FIRST, LAST, USED, prices) == {
        **SUBJECT,
        "currency": currency,
        **AMOUNTS,
        "cost": cost,
    }
    assert view.to_csv({"days": [report["days"][1]]}) == (
        "date,runs,run_seconds,build_seconds,artifact_bytes,prompt_tokens,completion_tokens,cost\r\n"
        f"2026-11-01,2,1.5,2.5,7,11,13,{csv_cost}\r\n"
    )


def project(**budget):
    return Project({"metadata": {"name": "demo"}, "spec": {"budget": budget}})


@pytest.mark.parametrize(
    ("month", "tokens", "limits", "exceeded", "words"),
    [
        ({"tokens": 100}, 10, (100, None), False, None),
        ({"tokens": 100, "cost": 5}, 90, (100, 5), False, "90 of 100 tokens"),
        ({"cost": 2}, 200, (None, 2), True, "2.00 of the cost 2.00"),
    ],
)
def test_budget_of_a_month_has_its_use(month, tokens, limits, exceeded, words):
    found = view.budget(project(month=month), MonthUse("2026-11", tokens, 2.0), NOW)
    message = found.pop("message")
    assert found == {
        "month": "2026-11",
        "tokens": {"used": tokens, "limit": limits[0]},
        "cost": {"used": 2.0, "limit": limits[1]},
        "exceeded": exceeded,
    }
    assert message is None if words is None else words in message


def test_budget_of_a_run_has_its_limits():
    assert view.run_budget(project(run={"tokens": 5})) == {"tokens": 5, "cost": None}
    assert view.run_budget(project(run={"cost": 1.5})) == {"tokens": None, "cost": 1.5}
    assert view.run_budget(project()) is view.budget(project(), MonthUse("2026-11", 0, None), NOW) is None


def test_limits_have_their_use():
    uses = [view.LimitUse("runs", 1, 5), view.LimitUse("projects", 2, None)]
    assert view.limits(uses) == [
        {"name": "runs", "used": 1, "limit": 5},
        {"name": "projects", "used": 2, "limit": None},
    ]
