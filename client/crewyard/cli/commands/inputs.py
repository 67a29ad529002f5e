"""`crewyard inputs`: the input that a deployment takes."""

from collections.abc import Mapping
from typing import Any

import click

from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import Column, display
from crewyard.errors import CrewyardError, NotFound

_COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("TYPE", lambda row: row["type"]),
    Column("REQUIRED", lambda row: "yes" if row["required"] else "no"),
    Column("DEFAULT", lambda row: display(row["default"])),
    Column("DESCRIPTION", lambda row: display(row["description"])),
)


@click.command()
@click.argument("deployment", metavar="DEPLOYMENT")
@with_context
def inputs(context: CliContext, deployment: str) -> None:
    """Show the input that a deployment takes; DEPLOYMENT is its id, or a project for its active one."""
    found = context.client.get_inputs(_deployment_id(context, deployment))
    if context.as_json:
        context.output.item(found, None)
        return
    schema = found["schema"]
    required = schema.get("required", ())
    rows = [_row(name, field, name in required) for name, field in schema.get("properties", {}).items()]
    context.output.rows(
        rows,
        _COLUMNS,
        "Neither the configuration nor the source describes the input; declare it in [run.inputs].",
    )
    if rows and not found["declared"]:
        context.output.status("Inferred from the source; other fields are accepted too.")


def _deployment_id(context: CliContext, given: str) -> str:
    if given.startswith("dep_"):
        return given
    try:
        active = context.client.get_project(given)["active_deployment_id"]
    except NotFound:
        if given.startswith("dep-"):
            return given  # a deployment as kubectl shows it
        raise
    if active is None:
        raise CrewyardError(f"project {given} has no active deployment; name a deployment by its id")
    return active


def _row(name: str, field: Mapping[str, Any], required: bool) -> dict[str, Any]:
    kind = field.get("type") or ("enum" if "enum" in field else "any")
    values = f": {', '.join(map(str, field['enum']))}" if "enum" in field else ""
    return {
        "name": name,
        "type": f"{kind}{values}",
        "required": required,
        "default": field.get("default"),
        "description": field.get("description"),
    }
