"""Labels as KEY=VALUE on the command line."""

from collections.abc import Callable, Mapping
from typing import Any

import click


def option(help_text: str) -> Callable[[Any], Any]:
    """Return the option --label, which can be repeated."""
    return click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help=help_text)


def parse(pairs: tuple[str, ...]) -> dict[str, str] | None:
    """Return the labels of KEY=VALUE pairs; None without one. Raises UsageError."""
    if wrong := [pair for pair in pairs if "=" not in pair]:
        raise click.UsageError(f"--label {wrong[0]} is not of the form KEY=VALUE")
    return dict(pair.split("=", 1) for pair in pairs) or None


def text(labels: Mapping[str, str] | None) -> str:
    """Return labels as one line."""
    return ", ".join(f"{key}={value}" for key, value in (labels or {}).items())
