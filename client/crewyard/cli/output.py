"""Output of commands: tables and sentences, or JSON. Called by every command.

Results go to standard output, everything else to standard error. With `--json` a result is one document and
a list one document per line; their keys are those of the API, and stable.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from crewyard.cli import github_step
from crewyard.cli.escape import escape_control

Row = Mapping[str, Any]
_STYLES = {
    "active": "green",
    "succeeded": "green",
    "running": "cyan",
    "building": "cyan",
    "pending": "yellow",
    "canceled": "yellow",
    "failed": "red",
}


class StdoutClosed(Exception):
    """The reader of standard output, or of standard error, closed the pipe, as `head` does."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise StdoutClosed


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and the text of a row."""

    title: str
    text: Callable[[Row], str]


class Output:
    """Prints results and status messages."""

    def __init__(self, as_json: bool, out: Console | None = None, err: Console | None = None) -> None:
        self.as_json = as_json
        self._in_step = github_step.in_step(os.environ)
        self._out = out or _Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._err = err or _Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def rows(self, rows: Iterable[Row], columns: Sequence[Column], none: str) -> None:
        """Print a list as a table, or the message `none` if it is empty."""
        if self.as_json:
            for row in rows:
                self._json(row)
            return
        lines = [[self._styled(column.text(row)) for column in columns] for row in rows]
        if not lines:
            self.status(none)
            return
        lines.insert(0, [Text(column.title, "bold") for column in columns])
        # Do not truncate to the terminal's width: a truncated id cannot be copied.
        widths = [max(line[index].cell_len for line in lines) for index in range(len(columns))]
        for line in lines:
            for cell, width in zip(line[:-1], widths, strict=False):
                cell.pad_right(width - cell.cell_len + 2)
            self._out.print(Text.assemble(*line))

    def details(self, row: Row, fields: Sequence[Column]) -> None:
        """Print one object, one field per line."""
        if self.as_json:
            self._json(row)
            return
        width = max(len(field.title) for field in fields)
        for field in fields:
            self._out.print(
                Text.assemble((f"{field.title:<{width}}  ", "bold"), self._styled(field.text(row)))
            )

    def item(self, row: Row, line: str | None) -> None:
        """Print one item of a stream: a JSON document, or `line` (None: nothing)."""
        if self.as_json:
            self._json(row)
        elif line is not None:
            self.text(f"{line}\n")

    def text(self, text: str) -> None:
        """Print text as it is, with control sequences escaped on a terminal.

        In a step of GitHub Actions, text without a line end gets one: two texts must not join to a command.
        """
        if self._in_step:
            text = github_step.escape_commands(text)
            if text and not text.endswith("\n"):
                text += "\n"
        self._write(escape_control(text, colours=True) if self._out.file.isatty() else text)

    def status(self, sentence: str, style: str = "") -> None:
        """Print a status message on standard error."""
        self._err.print(Text(self._escaped(sentence), style))

    def progress(self, of_bytes: bool) -> Progress:
        """Return progress bars on standard error, disabled if that is not a terminal."""
        last = (DownloadColumn(), TransferSpeedColumn()) if of_bytes else (TimeElapsedColumn(),)
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            *last,
            console=self._err,
            transient=True,
            disable=not self._err.file.isatty(),
        )

    def _json(self, row: Row) -> None:
        ascii_only = str(getattr(self._out.file, "encoding", None)).lower().replace("-", "") not in (
            "utf8",
            "utf8sig",
        )
        text = json.dumps(row, ensure_ascii=ascii_only)
        # JSON escapes the other control characters itself.
        text = re.sub("[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text)
        self._write(f"{github_step.escape_commands_json(text) if self._in_step else text}\n")

    def _write(self, text: str) -> None:
        try:
            self._out.file.write(text)
            self._out.file.flush()
        except BrokenPipeError:
            raise StdoutClosed from None

    def _styled(self, text: str) -> Text:
        return Text(self._escaped(text), _STYLES.get(text, ""))

    def _escaped(self, text: str) -> str:
        escaped = escape_control(text)
        return github_step.escape_commands(escaped) if self._in_step else escaped


def field(name: str, title: str | None = None) -> Column:
    """Return a column that shows the field `name` of a row."""
    return Column(title or name.upper().replace("_", " "), lambda row: display(row.get(name)))


def display(value: Any) -> str:
    """Return a value as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(display(item) for item in value) or "-"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def age(name: str, title: str = "AGE") -> Column:
    """Return a column that shows the age of the timestamp `name`."""
    return Column(title, lambda row: ago(row.get(name), datetime.now(UTC)))


def ago(text: Any, now: datetime) -> str:
    """Return the age of an API timestamp in kubectl's format."""
    if not text:
        return "-"
    seconds = max(0, int((now - datetime.fromisoformat(str(text))).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h" if seconds < 172_800 else f"{seconds // 86_400}d"


def waiting(cause: Mapping[str, Any]) -> str:
    """Return why a run or a deployment waits, on one line."""
    return ": ".join(display(cause[key]) for key in ("reason", "message") if cause[key])


def duration(milliseconds: Any) -> str:
    """Return a duration in milliseconds as text."""
    if milliseconds is None:
        return "-"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60}m"


def money(amount: float, currency: str) -> str:
    """Return an amount as text; below 0.1 with four digits, as a run costs little."""
    return f"{amount:.{4 if 0 < amount < 0.1 else 2}f} {currency}"


def size(count: Any) -> str:
    """Return a number of bytes as text."""
    amount = float(count or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable: the last unit always returns")
