"""`crewyard login` and `crewyard logout`: address and key in a file with mode 0600."""

import json
import os
import sys

import click

from crewyard.cli.context import CliContext, with_context
from crewyard.client import Client
from crewyard.settings import Settings, config_path, resolve


@click.command()
@click.option("--url", metavar="URL", help="Address of the service.")
@click.option("--project", "-p", metavar="NAME", help="Default project of later commands.")
@with_context
def login(context: CliContext, url: str | None, project: str | None) -> None:
    """Save the address of the service and an API key for later commands.

    Prompts for the key, or reads it from standard input; never takes it from the command line.
    """
    address = url or context.url or os.environ.get("CREWYARD_URL")
    if sys.stdin.isatty():
        address = address or str(click.prompt("URL", err=True))
        key = str(click.prompt("API key", hide_input=True, err=True))
    elif address:
        key = sys.stdin.readline().strip()
    else:
        raise click.UsageError("give --url, or set CREWYARD_URL; standard input contains only the key")
    settings = resolve(address, key, project, {"CREWYARD_CONFIG": os.devnull})
    with Client(settings=settings) as client:
        client.list_projects(1, 1)
    file = config_path(os.environ)
    _write(file, settings)
    context.output.status(f"Logged in to {settings.url}; saved in {file}")


@click.command()
@with_context
def logout(context: CliContext) -> None:
    """Delete the saved address and key."""
    file = config_path(os.environ)
    file.unlink(missing_ok=True)
    context.output.status(f"Removed {file}. The key stays valid; revoke it: crewyard keys revoke KEY_ID")


def _write(target, settings: Settings) -> None:  # type: ignore[no-untyped-def]
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    values = {"url": settings.url, "api_key": settings.api_key, "project": settings.project}
    # A TOML basic string has the escapes of JSON.
    text = "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value
    )
    temporary = target.with_name(f"{target.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    temporary.replace(target)
