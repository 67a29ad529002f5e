"""The budget of a month: what is refused, what is warned of, and what the annotation may contain."""

from datetime import UTC, datetime

import pytest

from crds.names import ANNOTATION_MONTH_USE
from crds.objects import Project
from crds.runs.budget import MonthUse, month_problem, recorded_use, used_share

NOW = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)


def project(**month):
    return Project({"metadata": {"name": "demo"}, "spec": {"budget": {"month": month}}})


def use(tokens=0, cost=None, month="2026-12"):
    return MonthUse(month, tokens, cost)


@pytest.mark.parametrize(
    ("limits", "used", "reason"),
    [
        ({}, use(10**9, 10.0**9), None),
        ({"tokens": 1000}, use(799), None),
        ({"tokens": 1000}, use(800), "BudgetWarning"),
        ({"tokens": 1000}, use(999), "BudgetWarning"),
        ({"tokens": 1000}, use(1000), "BudgetExceeded"),
        ({"tokens": 0}, use(0), "BudgetExceeded"),
        ({"tokens": 0}, None, "BudgetExceeded"),
        ({"tokens": 1000}, None, None),
        ({"tokens": 1000}, use(5000, month="2026-11"), None),
        ({"cost": 2.5}, use(10**9, 1.99), None),
        ({"cost": 2.5}, use(0, 2.0), "BudgetWarning"),
        ({"cost": 2.5}, use(0, 2.5), "BudgetExceeded"),
        ({"cost": 2.5}, use(10**9, None), None),
        ({"tokens": 1000, "cost": 2.5}, use(1, 3.0), "BudgetExceeded"),
        ({"tokens": 1000, "cost": 2.5}, use(2000, 0.1), "BudgetExceeded"),
    ],
)
def test_the_greatest_share_decides(limits, used, reason):
    problem = month_problem(project(**limits), used, NOW)
    assert (problem.reason if problem else None) == reason


def test_the_message_has_amounts_and_the_next_step():
    problem = month_problem(project(tokens=1000, cost=2.5), use(1200, 0.5), NOW)
    assert problem is not None and problem.exceeded
    assert problem.message == (
        "project demo has used 1,200 of 1,000 tokens and 0.50 of the cost 2.50 of its budget for 2026-12; "
        "new runs are refused until 2027-01-01 (UTC), or until budget.month is raised"
    )


def test_a_share_is_between_0_and_1():
    assert used_share({}, use(5)) == 0.0
    assert used_share({"tokens": 10}, use(25)) == 1.0
    assert used_share({"tokens": 10}, use(10**400)) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[]",
        "null",
        '{"month": "2026-12", "tokens": "many", "cost": null}',
        '{"month": "2026-12", "tokens": 1e999, "cost": null}',
        "[" * 100_000,
    ],
)
def test_an_annotation_of_another_client_records_nothing(text):
    annotations = {} if text is None else {ANNOTATION_MONTH_USE: text}
    assert recorded_use(Project({"metadata": {"name": "demo", "annotations": annotations}})) is None


def test_the_record_is_read_back():
    for written in (use(5, 0.25), use(0, None)):
        annotations = {ANNOTATION_MONTH_USE: written.to_json()}
        assert recorded_use(Project({"metadata": {"annotations": annotations}})) == written
