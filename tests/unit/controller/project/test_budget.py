"""The condition and the Events of a project's budget, and the refusal of its Runs."""

from controller.project.decide import decide
from controller.run.resolve import RunReady, RunRefused, resolve
from crds.names import ANNOTATION_MONTH_USE
from crds.runs.budget import MonthUse, month_of


def budgeted(make, tokens, status=None, month=None):
    use = MonthUse(month or month_of(make.now), tokens, None)
    metadata = {"annotations": {ANNOTATION_MONTH_USE: use.to_json()}}
    return make.project(budget={"month": {"tokens": 100}}, metadata=metadata, status=status)


def condition(status):
    found = [one for one in status["conditions"] if one["type"] == "BudgetExceeded"]
    return (found[0]["status"], found[0]["reason"]) if found else None


def test_the_condition_follows_the_use_with_one_event_each(make):
    status = {}
    for tokens, expected in ((79, None), (80, ("False", "BudgetWarning")), (100, ("True", "BudgetExceeded"))):
        decision = decide(budgeted(make, tokens, status), [], None, make.now)
        status = {**status, **(decision.status or {})}
        assert condition(status) == expected
        assert [event.reason for event in decision.events] == ([expected[1]] if expected else [])
        assert decide(budgeted(make, tokens, status), [], None, make.now).events == ()
    # The next month has its own budget, also before anything is recorded of it.
    decision = decide(budgeted(make, 100, status, month="2020-01"), [], None, make.now)
    assert condition(decision.status) is None


def test_runs_of_every_client_are_refused_once_the_budget_is_used(make):
    deployment = make.deployment(plan={})
    refused = resolve(make.run(), budgeted(make, 100), deployment, make.now)
    assert isinstance(refused, RunRefused) and refused.reason == "BudgetExceeded"
    assert "project demo has used 100 of 100 tokens" in refused.message
    assert isinstance(resolve(make.run(), budgeted(make, 99), deployment, make.now), RunReady)
    assert isinstance(
        resolve(make.run(), budgeted(make, 500, month="2020-01"), deployment, make.now), RunReady
    )
