"""`crewyard deployments`: list and show; `crewyard rollback`."""

import click

from crewyard.cli.context import Context, project_option, with_context
from crewyard.cli.output import Column, age, field, shown
from crewyard.cli.pages import items

_STATUSES = click.Choice(["pending", "building", "active", "failed", "superseded"])
COLUMNS = (
    field("id"),
    field("status"),
    age("created_at"),
    age("activated_at", "ACTIVE SINCE"),
    Column("MESSAGE", lambda row: shown(row["message"]).split("\n")[0][:60]),
)


@click.group()
def deployments() -> None:
    """Deployments, the snapshots of a crew."""


@deployments.command("list")
@project_option
@click.option("--status", type=_STATUSES, help="Only those of one status.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many.")
@with_context
def list_deployments(context: Context, project: str | None, status: str | None, limit: int) -> None:
    """Lists a project's deployments, newest first."""
    name = context.named_project(project)
    rows = items(lambda page, size: context.client.list_deployments(name, status, page, size), limit)
    context.output.rows(
        rows, COLUMNS, f"There is no such deployment; make one: crewyard deploy --project {name}"
    )


@deployments.command("show")
@click.argument("deployment")
@with_context
def show(context: Context, deployment: str) -> None:
    """Shows one deployment, and why it failed."""
    found = context.client.get_deployment(deployment)
    more = [field("git_sha"), field("build_logs_url", "BUILD LOG")]
    error = [_of_error(word) for word in found.get("error", ())]
    context.output.one(found, (*COLUMNS, *more, *error))


def _of_error(word: str) -> Column:
    return Column(word.upper(), lambda row: shown(row["error"].get(word)))


@click.command()
@click.argument("deployment")
@with_context
def rollback(context: Context, deployment: str) -> None:
    """Makes an earlier deployment the active one, at once and without a build."""
    found = context.client.roll_back(deployment)
    context.output.one(found, COLUMNS)
