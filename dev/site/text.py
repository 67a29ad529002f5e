"""Markdown helpers. Pure. Called by all modules that write reference sections."""

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Return text for a table cell: one line, with escaped bars and tags."""
    line = " ".join(str(text).split())
    return line.replace("|", "\\|").replace("<", "&lt;")


def code(text: object) -> str:
    """Return text as inline code, also valid inside a table."""
    line = " ".join(str(text).split()).replace("|", "\\|")
    return f"`{line}`" if line else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
