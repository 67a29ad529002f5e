"""Small pieces of Markdown. Pure. Called by all that writes reference sections."""

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """What a table's cell can hold: one line, without bars of its own, tags shown as they are written."""
    line = " ".join(str(text).split())
    return line.replace("|", "\\|").replace("<", "&lt;")


def code(text: object) -> str:
    """Text as it is typed, inside a table too."""
    line = " ".join(str(text).split()).replace("|", "\\|")
    return f"`{line}`" if line else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
