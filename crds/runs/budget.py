"""Budgets of a Project: that of a month (UTC), with what of it is used, and that of each run. Pure.

The API server counts the use of the month and records it in an annotation of the Project; the controller
reads that for Runs of any client. Both refuse in the same words. Use counts when a run or build has ended.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from crds.names import ANNOTATION_MONTH_USE
from crds.objects import Json, Project

WARNING_SHARE = 0.8
WARNING = "BudgetWarning"
EXCEEDED = "BudgetExceeded"


@dataclass(frozen=True)
class MonthUse:
    """What a Project has used in a month such as 2026-11; `cost` is None if there are no prices."""

    month: str
    tokens: int
    cost: float | None

    def to_json(self) -> str:
        """Return the text of the annotation."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class BudgetProblem:
    """A budget that is nearly or wholly used: `reason` is WARNING or EXCEEDED."""

    reason: str
    message: str

    @property
    def exceeded(self) -> bool:
        """Whether new runs are refused."""
        return self.reason == EXCEEDED


def month_of(now: datetime) -> str:
    """Return the month of a moment, in UTC."""
    return now.astimezone(UTC).strftime("%Y-%m")


def month_limits(project: Project) -> Json:
    """Return `spec.budget.month`; empty without a budget."""
    return (project.spec.get("budget") or {}).get("month") or {}


def run_limits(project: Project) -> Json:
    """Return `spec.budget.run`, which the runner enforces; empty without one."""
    return (project.spec.get("budget") or {}).get("run") or {}


def recorded_use(project: Project) -> MonthUse | None:
    """Return what the API server has recorded; None if it has recorded nothing, or something else."""
    try:
        value = json.loads(project.annotations.get(ANNOTATION_MONTH_USE, ""))
        cost = value["cost"]
        return MonthUse(str(value["month"]), int(value["tokens"]), None if cost is None else float(cost))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def used_share(limits: Json, use: MonthUse) -> float:
    """Return the greatest share of a limit that is used, from 0 to 1; of a limit of 0 all is used."""
    parts = ((use.tokens, limits.get("tokens")), (use.cost, limits.get("cost")))
    shares = [
        used / limit if used < limit else 1.0
        for used, limit in parts
        if used is not None and limit is not None
    ]
    return max(shares, default=0.0)


def month_problem(project: Project, use: MonthUse | None, now: datetime) -> BudgetProblem | None:
    """Return the problem with the budget of the month of `now`, with the next step; None if there is room."""
    limits = month_limits(project)
    if use is None or use.month != month_of(now):
        # Nothing is recorded of a month that started now.
        use = MonthUse(month_of(now), 0, None)
    share = used_share(limits, use)
    if share < WARNING_SHARE:
        return None
    amounts = f"project {project.name} has used {_amounts(limits, use)} of its budget for {use.month}"
    if share < 1.0:
        return BudgetProblem(WARNING, f"{amounts}; above it, new runs are refused")
    return BudgetProblem(
        EXCEEDED,
        f"{amounts}; new runs are refused until {_next_month(now)} (UTC), or until budget.month is raised",
    )


def _amounts(limits: Json, use: MonthUse) -> str:
    texts = []
    if (tokens := limits.get("tokens")) is not None:
        texts.append(f"{use.tokens:,} of {tokens:,} tokens")
    if (cost := limits.get("cost")) is not None and use.cost is not None:
        texts.append(f"{use.cost:,.2f} of the cost {cost:,.2f}")
    return " and ".join(texts)


def _next_month(now: datetime) -> date:
    return (now.astimezone(UTC).date().replace(day=28) + timedelta(days=4)).replace(day=1)
