"""`crewyard login` and `crewyard logout`: keeps address and key in a file that only its owner reads."""

import json
import os
import sys

import click

from crewyard.cli.context import Context, with_context
from crewyard.client import Client
from crewyard.settings import Settings, path, resolve


@click.command()
@click.option("--url", metavar="URL", help="The service's address.")
@click.option("--project", "-p", metavar="NAME", help="The project that is meant where none is said.")
@with_context
def login(context: Context, url: str | None, project: str | None) -> None:
    """Keeps the service's address and an API key for later calls.

    The key is asked for, or read from standard input: never given on the command line.
    """
    address = url or context.url or os.environ.get("CREWYARD_URL") or str(click.prompt("URL", err=True))
    if sys.stdin.isatty():
        key = str(click.prompt("API key", hide_input=True, err=True))
    else:
        key = sys.stdin.readline().strip()
    settings = resolve(address, key, project, {"CREWYARD_CONFIG": os.devnull})
    with Client(settings=settings) as client:
        client.list_projects(1, 1)
    place = path(os.environ)
    _write(place, settings)
    context.output.say(f"Logged in to {settings.url}; kept in {place}")


@click.command()
@with_context
def logout(context: Context) -> None:
    """Forgets address and key."""
    place = path(os.environ)
    place.unlink(missing_ok=True)
    context.output.say(f"{place} is removed; the key itself still holds: crewyard keys revoke ends it")


def _write(place, settings: Settings) -> None:  # type: ignore[no-untyped-def]
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    given = {"url": settings.url, "api_key": settings.api_key, "project": settings.project}
    # A TOML basic string has the escapes of JSON.
    text = "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in given.items() if value
    )
    fresh = place.with_name(f"{place.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    fresh.replace(place)
