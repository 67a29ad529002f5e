"""Daily usage as JSON and CSV. Pure. Called by the routes of usage."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any

from api.prices import Prices
from api.store.index.usage import Measures
from api.v1.model_usage import by_model
from crds.objects import Project
from crds.runs.budget import MonthUse, month_limits, month_problem, run_limits

COLUMNS = (
    "runs",
    "run_seconds",
    "build_seconds",
    "artifact_bytes",
    "prompt_tokens",
    "completion_tokens",
    "cost",
)


@dataclass(frozen=True)
class LimitUse:
    """A limit of a project and what is used of it; `limit` None: there is none."""

    name: str
    used: int
    limit: int | None


def report(
    project: str, first: date, last: date, days: Mapping[date, Measures], prices: Prices | None
) -> dict[str, Any]:
    """Return every day from `first` to `last`, also without usage, and the total."""
    dates = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    used = {day: days.get(day, Measures()) for day in dates}
    total = sum(used.values(), Measures())
    return {
        **_subject(project, first, last, prices),
        "prices": prices.as_json() if prices else None,
        "days": [{"date": day.isoformat(), **_fields(measures, prices)} for day, measures in used.items()],
        "total": _fields(total, prices),
        "models": by_model(total.models, prices),
    }


def project_item(
    project: str, first: date, last: date, used: Measures, prices: Prices | None
) -> dict[str, Any]:
    """Return the usage of one project of a list."""
    return {**_subject(project, first, last, prices), **_fields(used, prices)}


def _subject(project: str, first: date, last: date, prices: Prices | None) -> dict[str, Any]:
    return {
        "project": project,
        "from": first.isoformat(),
        "to": last.isoformat(),
        "currency": prices.currency if prices else None,
    }


def _fields(used: Measures, prices: Prices | None) -> dict[str, Any]:
    return {
        "runs": used.runs,
        "run_seconds": used.run_ms / 1000,
        "build_seconds": used.build_ms / 1000,
        "artifact_bytes": used.artifact_bytes,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "cost": prices.cost(used) if prices else None,
    }


def budget(project: Project, use: MonthUse, now: datetime) -> dict[str, Any] | None:
    """Return the budget of a project for this month and its use; None without one."""
    limits = month_limits(project)
    if not limits:
        return None
    problem = month_problem(project, use, now)
    return {
        "month": use.month,
        "tokens": {"used": use.tokens, "limit": limits.get("tokens")},
        "cost": {"used": use.cost, "limit": limits.get("cost")},
        "exceeded": problem is not None and problem.exceeded,
        "message": problem.message if problem else None,
    }


def run_budget(project: Project) -> dict[str, Any] | None:
    """Return the budget of each run of a project; None without one."""
    limits = run_limits(project)
    return {"tokens": limits.get("tokens"), "cost": limits.get("cost")} if limits else None


def limits(uses: Iterable[LimitUse]) -> list[dict[str, Any]]:
    """Return the limits of a project with what is used of each."""
    return [asdict(use) for use in uses]


def to_csv(report: Mapping[str, Any]) -> str:
    """Return the days of a report as CSV (RFC 4180) with a header line; the cost is empty without prices."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("date", *COLUMNS))
    for day in report["days"]:
        writer.writerow((day["date"], *(day[column] for column in COLUMNS)))
    return text.getvalue()
