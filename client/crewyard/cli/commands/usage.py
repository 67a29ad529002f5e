"""`crewyard usage`: usage of a project by day."""

from collections.abc import Mapping
from typing import Any, Literal

import click

from crewyard.cli.context import CliContext, project_option, with_context
from crewyard.cli.output import Column, display, field, money, size

_COUNTED: tuple[Literal["runs", "build_seconds", "artifact_bytes"], ...] = (
    "runs",
    "build_seconds",
    "artifact_bytes",
)


def _amount(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "-"
    return size(row[name]) if row["name"].endswith("_bytes") else str(row[name])


_LIMIT_COLUMNS = (
    Column("LIMIT", lambda row: row["name"]),
    Column("USED", lambda row: _amount(row, "used")),
    Column("OF", lambda row: _amount(row, "limit")),
)


_BUDGET_COLUMNS = (
    Column("BUDGET", lambda row: row["name"]),
    Column("USED", lambda row: "-" if row["used"] is None else f"{row['used']:,}"),
    Column("OF", lambda row: f"{row['limit']:,}"),
)


@click.command()
@project_option
@click.option("--from", "since", metavar="DAY", help="First day (UTC), such as 2026-11-01.")
@click.option("--to", "until", metavar="DAY", help="Last day (UTC).")
@with_context
def usage(context: CliContext, project: str | None, since: str | None, until: str | None) -> None:
    """Show runs, time, storage, tokens and cost, and how much of each limit and of the budget is used."""
    report = context.client.get_usage(context.named_project(project), since, until)
    if context.as_json:
        context.output.item(report, None)
        return
    currency = report["currency"]

    def cost(row: Mapping[str, Any]) -> str:
        return "-" if row["cost"] is None else money(row["cost"], currency or "").rstrip()

    columns = (
        Column("DAY", lambda row: display(row.get("date", "total"))),
        field("runs"),
        Column("RUN TIME", lambda row: f"{row['run_seconds']:.0f}s"),
        Column("BUILD TIME", lambda row: f"{row['build_seconds']:.0f}s"),
        Column("ARTIFACTS", lambda row: size(row["artifact_bytes"])),
        field("prompt_tokens"),
        field("completion_tokens"),
        Column("COST", cost),
    )
    days = [day for day in report["days"] if any(day[key] for key in _COUNTED)]
    context.output.rows([*days, report["total"]], columns, "No usage.")
    # An older API server sends no models and no limits.
    if models := report.get("models"):
        model_columns = (
            field("model"),
            field("prompt_tokens"),
            field("completion_tokens"),
            Column("COST", cost),
        )
        context.output.rows([{"model": name, **used} for name, used in models.items()], model_columns, "")
    if limits := report.get("limits"):
        context.output.rows(limits, _LIMIT_COLUMNS, "No limits.")
    if run_budget := report.get("run_budget"):
        amounts = [f"{amount:,} {name}" for name, amount in run_budget.items() if amount is not None]
        context.output.status(f"Budget of each run: {', '.join(amounts)}")
    if budget := report.get("budget"):
        month = budget["month"]
        rows: list[Mapping[str, Any]] = [
            {"name": f"tokens in {month}", **budget["tokens"]},
            {"name": f"cost in {month}", **budget["cost"]},
        ]
        context.output.rows([row for row in rows if row["limit"] is not None], _BUDGET_COLUMNS, "No budget.")
        if budget["message"]:
            context.output.status(budget["message"])
