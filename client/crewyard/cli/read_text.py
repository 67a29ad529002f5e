"""Texts of files and standard input: UTF-8, whatever the terminal's encoding. Called by `run` and `env`."""

import sys
from pathlib import Path

import click


def read(file: Path) -> str:
    """The text of a file (`-` for standard input), as UTF-8. Raises UsageError where it is none, OSError."""
    given = standard_input() if str(file) == "-" else file.read_bytes()
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = "standard input" if str(file) == "-" else str(file)
        raise click.UsageError(f"{where} is no UTF-8 text: {error}") from None


def standard_input() -> bytes:
    """All of standard input."""
    return sys.stdin.buffer.read()
