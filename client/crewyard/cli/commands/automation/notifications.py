"""`crewyard notifications`: what was sent to the receivers of a project."""

import click

from crewyard.cli.context import CliContext, project_option, with_context
from crewyard.cli.output import field
from crewyard.cli.pages import items

COLUMNS = (
    field("id"),
    field("notification"),
    field("type"),
    field("object_id", "OBJECT"),
    field("status"),
    field("attempts"),
    field("created_at", "CREATED"),
    field("next_attempt_at", "NEXT"),
    field("error"),
)


@click.group()
def notifications() -> None:
    """Show and repeat deliveries of notifications; spec.notifications of a project sets the receivers."""


@notifications.command("list")
@project_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to show.")
@with_context
def list_deliveries(context: CliContext, project: str | None, limit: int) -> None:
    """List the deliveries of the last seven days, the newest first."""
    name = context.named_project(project)
    rows = items(lambda page, size: context.client.list_deliveries(name, page, size), limit)
    context.output.rows(rows, COLUMNS, f"{name} has sent no notification in the last seven days")


@notifications.command("redeliver")
@click.argument("deliveries", nargs=-1, required=True, metavar="ID ...")
@project_option
@with_context
def redeliver(context: CliContext, deliveries: tuple[str, ...], project: str | None) -> None:
    """Send deliveries again, each with its id and the object as it is now."""
    name = context.named_project(project)
    for delivery in deliveries:
        context.client.redeliver(name, delivery)
        context.output.item({"id": delivery}, f"{delivery} will be sent again")
