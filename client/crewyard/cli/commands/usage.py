"""`crewyard usage`: what a project used, by day."""

from collections.abc import Mapping
from typing import Any, Literal

import click

from crewyard.cli.context import Context, project_option, with_context
from crewyard.cli.output import Column, field, shown, size

_COUNTED: tuple[Literal["runs", "build_seconds", "artifact_bytes"], ...] = (
    "runs",
    "build_seconds",
    "artifact_bytes",
)


@click.command()
@project_option
@click.option("--from", "since", metavar="DAY", help="The first day (UTC), such as 2026-11-01.")
@click.option("--to", "until", metavar="DAY", help="The last day.")
@with_context
def usage(context: Context, project: str | None, since: str | None, until: str | None) -> None:
    """Shows runs, time, storage, tokens and cost."""
    found = context.client.get_usage(context.named_project(project), since, until)
    if context.as_json:
        context.output.item(found, None)
        return
    currency = found["currency"]

    def cost(row: Mapping[str, Any]) -> str:
        return "-" if row["cost"] is None else f"{row['cost']:.2f} {currency or ''}".rstrip()

    columns = (
        Column("DAY", lambda row: shown(row.get("date", "total"))),
        field("runs"),
        Column("RUN TIME", lambda row: f"{row['run_seconds']:.0f}s"),
        Column("BUILD TIME", lambda row: f"{row['build_seconds']:.0f}s"),
        Column("ARTIFACTS", lambda row: size(row["artifact_bytes"])),
        field("prompt_tokens"),
        field("completion_tokens"),
        Column("COST", cost),
    )
    used = [day for day in found["days"] if any(day[key] for key in _COUNTED)]
    context.output.rows([*used, found["total"]], columns, "Nothing was used.")
