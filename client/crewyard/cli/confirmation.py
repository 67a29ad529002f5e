"""Confirmation of commands that delete something."""

import sys

import click

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, yes: bool) -> None:
    """Ask the question, unless `yes`. Raises `click.Abort` for a no."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("cannot ask for confirmation: standard input is not a terminal; pass --yes")
    if not yes:
        click.confirm(question, abort=True, err=True)
