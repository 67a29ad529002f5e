"""Text of files and standard input, always as UTF-8. Called by `run` and `env`."""

import sys
from pathlib import Path

import click


def read(file: Path) -> str:
    """Return the text of a file (`-` for standard input). Raises UsageError if it is not UTF-8, OSError."""
    content = standard_input() if str(file) == "-" else file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        source = "standard input" if str(file) == "-" else str(file)
        raise click.UsageError(f"{source} is not UTF-8 text: {error}") from None


def standard_input() -> bytes:
    """Return all of standard input."""
    return sys.stdin.buffer.read()
