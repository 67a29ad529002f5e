"""`crewyard keys`: API keys. A new key is shown this once."""

import click

from crewyard.cli.context import Context, with_context
from crewyard.cli.output import Column, age, field, shown
from crewyard.cli.pages import items

_COLUMNS = (
    field("id"),
    field("name"),
    field("scopes"),
    Column("PROJECTS", lambda row: "all" if row["projects"] is None else shown(row["projects"])),
    field("expires_at", "EXPIRES"),
    age("last_used_at", "LAST USED"),
    age("created_at"),
)


@click.group()
def keys() -> None:
    """API keys."""


@keys.command("list")
@with_context
def list_keys(context: Context) -> None:
    """Lists the API keys."""
    context.output.rows(items(context.client.list_keys, None), _COLUMNS, "There is no API key.")


@keys.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "run", "deploy", "admin"]),
    multiple=True,
    required=True,
    help="What it may do; may be given several times.",
)
@click.option(
    "--for", "projects", metavar="PROJECT", multiple=True, help="Only for this project; else for all."
)
@click.option("--plan", help="The plan of its requests; else the best of its projects.")
@click.option("--expires", metavar="TIME", help="When it expires, such as 2027-01-31T00:00:00Z.")
@with_context
def create(
    context: Context,
    name: str,
    scopes: tuple[str, ...],
    projects: tuple[str, ...],
    plan: str | None,
    expires: str | None,
) -> None:
    """Makes an API key and shows it, this once."""
    more = {"projects": list(projects) or None, "plan": plan, "expires_at": expires}
    given = {key: value for key, value in more.items() if value is not None}
    made = context.client.create_key(name, list(scopes), **given)  # type: ignore[arg-type]
    context.output.one(made, (*_COLUMNS, field("key")))
    context.output.say("Keep the key now: it is not shown again.")


@keys.command("revoke")
@click.argument("key")
@with_context
def revoke(context: Context, key: str) -> None:
    """Ends an API key (by its id) at once."""
    context.client.revoke_key(key)
    context.output.say(f"The key {key} is revoked.")
