"""Text of files and standard input, always as UTF-8. Called by `run`, `env` and `audit`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click


def read(file: Path) -> str:
    """Return the text of a file (`-` for standard input). Raises UsageError if it is not UTF-8, OSError."""
    return _decode(standard_input() if str(file) == "-" else file.read_bytes(), file)


def lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file that are not empty; it may be larger than the memory. Raises as `read`."""
    with file.open("rb") as content:
        for line in content:
            if text := _decode(line, file).strip():
                yield text


def _decode(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        source = "standard input" if str(file) == "-" else str(file)
        raise click.UsageError(f"{source} is not UTF-8 text: {error}") from None


def standard_input() -> bytes:
    """Return all of standard input."""
    return sys.stdin.buffer.read()
