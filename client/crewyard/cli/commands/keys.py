"""`crewyard keys`: API keys. A new key is shown only once."""

import click

from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import Column, age, display, field
from crewyard.cli.pages import items
from crewyard.errors import NotFound

_COLUMNS = (
    field("id"),
    field("name"),
    field("scopes"),
    Column("PROJECTS", lambda row: "all" if row["projects"] is None else display(row["projects"])),
    field("expires_at", "EXPIRES"),
    age("last_used_at", "LAST USED"),
    age("created_at"),
)


@click.group()
def keys() -> None:
    """Manage API keys."""


@keys.command("list")
@with_context
def list_keys(context: CliContext) -> None:
    """List the API keys."""
    context.output.rows(items(context.client.list_keys, None), _COLUMNS, "No API keys found.")


@keys.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "run", "preview", "deploy", "admin"]),
    multiple=True,
    required=True,
    help="Scope of the key; repeat for several.",
)
@click.option(
    "--for",
    "projects",
    metavar="PROJECT",
    multiple=True,
    help="Restrict the key to this project (default: all); repeat for several.",
)
@click.option("--plan", help="Plan for its rate limits (default: the best plan of its projects).")
@click.option("--expires", metavar="TIME", help="Expiry time, such as 2027-01-31T00:00:00Z.")
@with_context
def create(
    context: CliContext,
    name: str,
    scopes: tuple[str, ...],
    projects: tuple[str, ...],
    plan: str | None,
    expires: str | None,
) -> None:
    """Create an API key and show it, only once."""
    optional = {"projects": list(projects) or None, "plan": plan, "expires_at": expires}
    fields = {key: value for key, value in optional.items() if value is not None}
    created = context.client.create_key(name, list(scopes), **fields)  # type: ignore[arg-type]
    context.output.details(created, (*_COLUMNS, field("key")))
    context.output.status("Save the key now: it is not shown again.")
    for project in projects:
        try:
            context.client.get_project(project)
        except NotFound:
            context.output.status(f"There is no project {project} yet. The key is for it once it is created.")


@keys.command("revoke")
@click.argument("key")
@with_context
def revoke(context: CliContext, key: str) -> None:
    """Revoke an API key (by its id) immediately."""
    context.client.revoke_key(key)
    context.output.item({"id": key}, f"{key} is revoked")
