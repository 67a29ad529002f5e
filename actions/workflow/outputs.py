"""What a step leaves behind: outputs for later steps, and its part of the job's summary.

Called by the two programs. Without a runner (no such file named) nothing is written.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&@:$])")
_NO_ADDRESS = re.compile(r"[<>\\\s]")
_SUMMARY_BYTES = 900_000
_CELL = 1000


def write_outputs(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Writes GITHUB_OUTPUT. The end mark is drawn anew, so that no value can hold it."""
    path = environment.get("GITHUB_OUTPUT")
    if not path:
        return
    with Path(path).open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        for name, value in outputs.items():
            end = f"end_{secrets.token_hex(16)}"
            file.write(f"{name}<<{end}\n{value}\n{end}\n")


def cell(text: str) -> str:
    """`text` as itself within a Markdown table: no link, no image, no other column."""
    short = " ".join(text.split())
    short = short if len(short) <= _CELL else short[: _CELL - 1] + "…"
    return _PUNCTUATION.sub(r"\\\1", short)


def link(text: str, url: str) -> str:
    """A link to an address of our own making."""
    address = _NO_ADDRESS.sub("", url)
    return f"[{cell(text)}](<{address}>)"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A heading and two columns; the values are Markdown already."""
    body = "".join(f"| {cell(name)} | {value} |\n" for name, value in rows)
    return f"### {cell(title)}\n\n| | |\n| --- | --- |\n{body}\n"


def write_summary(environment: Mapping[str, str], text: str) -> None:
    """Adds to GITHUB_STEP_SUMMARY, as long as that stays below what GitHub shows."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    file = Path(path)
    size = file.stat().st_size if file.exists() else 0
    if size + len(text.encode(errors="replace")) <= _SUMMARY_BYTES:
        with file.open("a", encoding="utf-8", errors="replace", newline="\n") as out:
            out.write(text)
