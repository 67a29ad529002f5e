"""`crewyard runs`: list, show, cancel."""

import json

import click

from crewyard.cli.context import Context, with_context
from crewyard.cli.output import Column, age, duration, field, shown
from crewyard.cli.pages import items

_STATUSES = click.Choice(["pending", "running", "succeeded", "failed", "canceled"])
COLUMNS = (
    field("id"),
    field("status"),
    field("project"),
    field("deployment_id", "DEPLOYMENT"),
    Column("TOOK", lambda row: duration(row["duration_ms"])),
    age("created_at"),
)


@click.group()
def runs() -> None:
    """Runs, the executions of a crew."""


@runs.command("list")
@click.option("--project", "-p", metavar="NAME", help="Only those of one project.")
@click.option("--deployment", metavar="ID", help="Only those of one deployment.")
@click.option("--status", type=_STATUSES, help="Only those of one status.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many.")
@with_context
def list_runs(
    context: Context, project: str | None, deployment: str | None, status: str | None, limit: int
) -> None:
    """Lists runs, newest first."""
    rows = items(lambda page, size: context.client.list_runs(project, deployment, status, page, size), limit)
    context.output.rows(rows, COLUMNS, "There is no such run; start one: crewyard run PROJECT")


@runs.command("show")
@click.argument("run")
@with_context
def show(context: Context, run: str) -> None:
    """Shows one run with its input, and its output or error."""
    found = context.client.get_run(run)
    more = [Column("INPUT", lambda row: json.dumps(row["input"], ensure_ascii=False))]
    if "queue_position" in found:
        more.append(field("queue_position", "PLACE IN THE QUEUE"))
    if "output" in found:
        more.append(Column("OUTPUT", lambda row: _output(row["output"])))
    if "error" in found:
        more += [
            Column("REASON", lambda row: shown(row["error"]["reason"])),
            Column("ERROR", lambda row: shown(row["error"]["message"])),
        ]
        if "docs_url" in found["error"]:
            more.append(Column("READ ON", lambda row: row["error"]["docs_url"]))
    context.output.one(found, (*COLUMNS, *more))


@runs.command("cancel")
@click.argument("run")
@with_context
def cancel(context: Context, run: str) -> None:
    """Asks a run to stop: its crew gets SIGTERM, ten seconds later SIGKILL."""
    found = context.client.cancel_run(run)
    context.output.item(
        found, f"{run} is {found['status']}" if found["status"] == "canceled" else f"{run} stops"
    )


def _output(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
