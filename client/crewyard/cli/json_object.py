"""JSON objects of options and files. Called by `run`, `rerun` and `schedules`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from crewyard.cli import read_text


def input_options(
    text_help: str = "Inputs of the crew, a JSON object.",
    file_help: str = "File with the inputs (- for standard input).",
) -> Callable[[Any], Any]:
    """Return the options --input and --input-file, the arguments of `read_inputs`."""
    file = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)

    def add(command: Any) -> Any:
        command = click.option("--input-file", type=file, help=file_help)(command)
        return click.option("--input", "text", metavar="JSON", help=text_help)(command)

    return add


def read_inputs(text: str | None, file: Path | None) -> dict[str, Any] | None:
    """Return the inputs of --input or --input-file as an object. Raises UsageError."""
    if text is not None and file is not None:
        raise click.UsageError("pass only one of --input and --input-file")
    source = "--input"
    if file is not None:
        source = "standard input" if str(file) == "-" else str(file)
        text = read_text.read(file)
    return parse(text, source)


def parse(text: str | None, source: str) -> dict[str, Any] | None:
    """Return the JSON object in a text from `source`. Raises UsageError that locates the JSON error."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "; pass a file with --input-file" if source == "--input" else ""
        raise click.UsageError(f"{source} is not JSON: {error}{hint}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f'{source} must be a JSON object, such as {{"topic": "boats"}}')
    return value
