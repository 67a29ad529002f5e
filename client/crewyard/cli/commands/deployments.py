"""`crewyard deployments`: list, show, cancel and delete deployments; `crewyard rollback`."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from crewyard.cli.confirmation import confirm, yes_option
from crewyard.cli.context import CliContext, project_option, with_context
from crewyard.cli.output import Column, age, display, duration, field, waiting
from crewyard.cli.pages import items

_STATUSES = click.Choice(["pending", "building", "active", "failed", "superseded"])
COLUMNS = (
    field("id"),
    Column("STATUS", lambda row: row["status"] + (", preview" if row.get("is_preview") else "")),
    age("created_at"),
    age("activated_at", "ACTIVE SINCE"),
    Column("MESSAGE", lambda row: display(row["message"]).split("\n")[0][:60]),
)


@click.group()
def deployments() -> None:
    """Manage deployments, the built snapshots of a crew."""


@deployments.command("list")
@project_option
@click.option("--status", type=_STATUSES, help="Only deployments with this status.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number.")
@with_context
def list_deployments(context: CliContext, project: str | None, status: str | None, limit: int) -> None:
    """List a project's deployments, newest first."""
    name = context.named_project(project)
    rows = list(items(lambda page, size: context.client.list_deployments(name, status, page, size), limit))
    if not rows:
        context.client.get_project(name)  # fails if there is none
    context.output.rows(rows, COLUMNS, f"No deployments found. Create one: crewyard deploy --project {name}")


@deployments.command("show")
@click.argument("deployment")
@with_context
def show(context: CliContext, deployment: str) -> None:
    """Show one deployment, with its error if it failed."""
    shown = context.client.get_deployment(deployment)
    more = [field("created_by"), field("git_sha"), field("build_logs_url", "BUILD LOG")]
    if "waiting" in shown:
        more.append(Column("WAITING", lambda row: waiting(row["waiting"])))
    if "stages" in shown:
        more.append(Column("STAGES", lambda row: _stages(row["stages"])))
    if shown.get("cancel_requested"):
        more.append(Column("CANCELING", lambda row: "yes"))
    if "smoke_run" in shown:
        more.append(field("smoke_run"))
    if "entrypoints" in shown:
        more.append(field("entrypoints"))
    error = [_error_column(key) for key in shown.get("error", ())]
    context.output.details(shown, (*COLUMNS, *more, *error))


@deployments.command("cancel")
@click.argument("deployment")
@with_context
def cancel(context: CliContext, deployment: str) -> None:
    """Cancel a queued or running build; the active deployment stays active."""
    shown = context.client.cancel_deployment(deployment)
    canceled = shown["status"] == "failed"
    context.output.item(shown, f"{deployment} is {'canceled' if canceled else 'stopping'}")


@deployments.command("delete")
@click.argument("deployment")
@yes_option
@with_context
def delete(context: CliContext, deployment: str, yes: bool) -> None:
    """Erase a deployment that is neither active nor used by runs, with its image."""
    confirm(f"Erase {deployment} with its image and build log?", yes)
    context.client.erase_deployment(deployment)
    context.output.item({"id": deployment}, f"{deployment} is erased")


def _stages(stages: Sequence[Mapping[str, Any]]) -> str:
    """Return the stages of a build with their durations; the last one may have none yet."""
    parts = (
        f"{stage['name']} {duration(stage['seconds'] * 1000)}" if "seconds" in stage else f"{stage['name']} …"
        for stage in stages
    )
    return ", ".join(parts)


def _error_column(key: str) -> Column:
    return Column(key.upper(), lambda row: display(row["error"].get(key)))


@click.command()
@click.argument("deployment")
@with_context
def rollback(context: CliContext, deployment: str) -> None:
    """Activate an earlier deployment immediately, without a build."""
    shown = context.client.roll_back(deployment)
    context.output.details(shown, COLUMNS)
