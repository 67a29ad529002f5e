"""The condition of schedules that cannot be used."""

from controller.project.decide import decide
from controller.source.observed import ObservedSource, SourceProblem
from crds import schema
from crds.conditions import find
from crds.kinds import PROJECT
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS, ANNOTATION_MONTH_USE
from crds.runs.budget import MonthUse, month_of

VALID = {"name": "nightly", "cron": "@daily"}
NO_DATE = {"name": "never", "cron": "0 0 31 2 *"}
NO_ZONE = {"name": "away", "cron": "@daily", "timeZone": "Nowhere/Else"}


def condition(make, *schedules):
    decision = decide(make.project(schedules=list(schedules)), [], None, make.now)
    ready = find(decision.status["conditions"], "Ready")
    assert (ready["status"], decision.events) == ("True", ())
    return find(decision.status["conditions"], "SchedulesInvalid")


def test_the_condition_names_each_invalid_schedule_and_its_field(make):
    found = condition(make, VALID, NO_DATE, {**NO_ZONE, "suspend": True})
    assert (found["status"], found["reason"]) == ("True", "ScheduleInvalid")
    never, away = found["message"].split("; schedule ")
    assert never.startswith("schedule never: cron: '0 0 31 2 *' ")
    assert away.startswith("away: timeZone: 'Nowhere/Else' is not a known time zone")


def test_valid_schedules_have_no_condition(make):
    assert condition(make, VALID, {**VALID, "name": "paused", "suspend": True}) is None
    assert condition(make) is None


def test_all_conditions_of_a_project_fit_its_schema(make):
    git = {"url": "https://git.example.com/team/crew.git"}
    use = MonthUse(month_of(make.now), 100, None).to_json()
    project = make.project(
        source={"git": git},
        budget={"month": {"tokens": 100}},
        notifications=[
            {
                "name": "chat",
                "url": "https://hooks.example.com",
                "secretRef": {"name": "chat"},
                "events": ["run.failed"],
            }
        ],
        schedules=[NO_DATE],
        metadata={"annotations": {ANNOTATION_MONTH_USE: use, ANNOTATION_FAILING_NOTIFICATIONS: "chat"}},
        status={"warm": {"message": "the import failed"}},
    )
    away = ObservedSource(git, "", problem=SourceProblem("Unreachable", "away", True))
    status = decide(project, [], away, make.now, lowered=("run.warm: 9 is lowered to 2",)).status
    assert {one["type"] for one in status["conditions"]} == {
        "Ready", "SourceResolved", "Reconciling", "Limited", "BudgetExceeded", "NotificationsFailing",
        "SchedulesInvalid", "WarmPodsFailing",
    }  # fmt: skip
    whole = {**project.raw, "status": status}
    assert [error.message for error in schema.validator(PROJECT).iter_errors(whole)] == []
