"""Outputs of a step for later steps, and its part of the job summary.

Called by both actions. Writes nothing outside GitHub Actions, where the files are not set.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&@:$])")
_NOT_IN_URL = re.compile(r"[<>\\\s]")
_MAX_SUMMARY_BYTES = 900_000
_MAX_CELL_CHARS = 1000


def write_outputs(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Append to GITHUB_OUTPUT with a random delimiter per value, which no value can contain."""
    path = environment.get("GITHUB_OUTPUT")
    if not path:
        return
    with Path(path).open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        for name, value in outputs.items():
            end = f"end_{secrets.token_hex(16)}"
            file.write(f"{name}<<{end}\n{value}\n{end}\n")


def cell(text: str) -> str:
    """Return `text` escaped for a cell of a Markdown table: no links, images or further columns."""
    short = " ".join(text.split())
    short = short if len(short) <= _MAX_CELL_CHARS else short[: _MAX_CELL_CHARS - 1] + "…"
    return _PUNCTUATION.sub(r"\\\1", short)


def link(text: str, url: str) -> str:
    """Return a Markdown link to a trusted URL."""
    address = _NOT_IN_URL.sub("", url)
    return f"[{cell(text)}](<{address}>)"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a heading and a table of two columns; the values must be Markdown."""
    body = "".join(f"| {cell(name)} | {value} |\n" for name, value in rows)
    return f"### {cell(title)}\n\n| | |\n| --- | --- |\n{body}\n"


def write_summary(environment: Mapping[str, str], text: str) -> None:
    """Append to GITHUB_STEP_SUMMARY unless the file would exceed GitHub's size limit."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    file = Path(path)
    size = file.stat().st_size if file.exists() else 0
    if size + len(text.encode(errors="replace")) <= _MAX_SUMMARY_BYTES:
        with file.open("a", encoding="utf-8", errors="replace", newline="\n") as out:
            out.write(text)
