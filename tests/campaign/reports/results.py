"""The results table of all recorded campaigns. Pure but for reading and writing.

    python -m tests.campaign.reports.results DIRECTORY …
        prints it
    python -m tests.campaign.reports.results DIRECTORY … --page docs/campaign.md
        puts it between the page's marks

Called by hand, and by `tests/campaign/conftest.py` at the end of `make campaign`.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.campaign.checks.checker import DOUBLED, LOST, WRONG_END

FILE = "campaign.jsonl"
BEGIN, END = "<!-- seen: begin -->", "<!-- seen: end -->"
HEAD = ("test", "of", "faults injected", "runs", "lost", "doubled", "wrong ends", "other", "worst recovery")


@dataclass
class ResultRow:
    """One kind of work in all runs of one test."""

    times: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    recovery: float = 0.0

    def add(self, faults: Mapping[str, int], column: Mapping[str, Any]) -> None:
        """Take in one run of the test."""
        self.times += 1
        self.faults.update(faults)
        self.runs += column["runs"]
        self.broken.update(violation["kind"] for violation in column["violations"])
        self.recovery = max(self.recovery, column["recovery"])

    def cells(self) -> Iterator[str]:
        """Faults, runs, violations, recovery."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        yield f"{sum(self.faults.values())}: {kinds}" if len(self.faults) > 1 else kinds
        yield str(self.runs)
        for kind in (LOST, DOUBLED, WRONG_END):
            yield str(self.broken[kind])
        yield str(sum(count for kind, count in self.broken.items() if kind not in (LOST, DOUBLED, WRONG_END)))
        yield f"{self.recovery:.1f} s"


def lines(directories: Iterable[Path]) -> list[dict[str, Any]]:
    """What was kept in these directories, in its order."""
    return [
        json.loads(line) for place in directories for line in (place / FILE).read_text().splitlines() if line
    ]


def table(kept: Iterable[Mapping[str, Any]]) -> str:
    """The table; several runs of a test are one row, with their sums and the worst recovery."""
    rows: dict[tuple[str, str], ResultRow] = {}
    when: dict[str, set[str]] = {}
    bugs: dict[str, bool] = {}
    for line in kept:
        when.setdefault(line["machine"], set()).add(line["at"][:10])
        if "bug" in line:
            # Of one that was tried again the last try counts.
            bugs[line["bug"]] = line["caught"]
        for column in line.get("columns", ()):
            rows.setdefault((line["name"], column["work"]), ResultRow()).add(line["faults"], column)
    found = ["| " + " | ".join(HEAD) + " |", "| " + " | ".join("---" for _ in HEAD) + " |"]
    for (name, work), row in rows.items():
        times = f" (× {row.times})" if row.times > 1 else ""
        found.append("| " + " | ".join((f"`{name}`{times}", work, *row.cells())) + " |")
    notes = [f"Seeded bugs caught: {sum(bugs.values())} of {len(bugs)}."] if bugs else []
    notes += [f"{machine}, on {', '.join(sorted(days))}." for machine, days in when.items()]
    return "\n".join([*found, *(("", *notes) if notes else ())])


def insert_table(page: str, text: str) -> str:
    """The page with `text` between its marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> None:
    """Print the table, or puts it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.reports.results")
    parser.add_argument("directory", nargs="+", type=Path, help="what CREWYARD_CAMPAIGN_REPORT named")
    parser.add_argument("--page", type=Path, help="a page with the marks")
    options = parser.parse_args()
    text = table(lines(options.directory))
    if options.page is None:
        print(text)
    else:
        options.page.write_text(insert_table(options.page.read_text(), text))


if __name__ == "__main__":
    main()
