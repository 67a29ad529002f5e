"""The figures of a campaign: Runs and bare Jobs side by side, and what was broken. Pure but for writing them.

Called by the tests, which fail with this text. A campaign without a fault has shown nothing and fails too.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.lib.machine import describe_machine
from crds.times import format_time
from tests.campaign.checks.checker import DOUBLED, LOST, WRONG_END, Violation
from tests.campaign.reports.results import FILE
from tests.campaign.schedule import again

PLACE = "CREWYARD_CAMPAIGN_REPORT"
"""A directory to which the figures of each test are added as lines of JSON."""


@dataclass(frozen=True)
class ReportColumn:
    """What became of one kind of work. `recovery`: the worst seconds from a crew's last output, or the end of
    the last fault where that was later, to the end that was seen.
    """

    work: str
    runs: int
    violations: tuple[Violation, ...] = ()
    recovery: float = 0.0

    def count(self, kind: str) -> int:
        """How many violations of a kind there are."""
        return sum(violation.kind == kind for violation in self.violations)


@dataclass(frozen=True)
class CampaignReport:
    """One test's figures."""

    name: str
    faults: Counter[str]
    columns: tuple[ReportColumn, ...]
    seed: int | None = None
    notes: tuple[str, ...] = field(default=())

    def text(self) -> str:
        """The table, and each violation in a line."""
        total = sum(self.faults.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        lines = [f"{self.name}: {total} faults injected ({kinds or 'none'})"]
        head = ("", *(column.work for column in self.columns))
        rows: list[Sequence[object]] = [head, ("runs", *(column.runs for column in self.columns))]
        for kind in (LOST, DOUBLED, WRONG_END):
            rows.append((kind, *(column.count(kind) for column in self.columns)))
        others = [
            sum(violation.kind not in (LOST, DOUBLED, WRONG_END) for violation in column.violations)
            for column in self.columns
        ]
        rows.append(("other violations", *others))
        rows.append(("worst recovery, s", *(f"{column.recovery:.1f}" for column in self.columns)))
        lines += ["  " + f"{row[0]:<20}" + "".join(f"{value!s:>10}" for value in row[1:]) for row in rows]
        lines += [f"  {note}" for note in self.notes]
        for column in self.columns:
            lines += [
                f"  {column.work}: {violation.kind} {violation.run}: {violation.text}"
                for violation in column.violations[:40]
            ]
        if self.seed is not None and not self.good:
            lines.append(f"  {again(self.seed, self.name)}")
        return "\n".join(lines)

    @property
    def good(self) -> bool:
        """Whether faults were injected and the first column, which is ours, has no violation."""
        return sum(self.faults.values()) > 0 and not self.columns[0].violations

    def keep(self) -> None:
        """Add the figures to the directory that the environment names, if it names one."""
        columns = [asdict(column) for column in self.columns]
        _add(name=self.name, seed=self.seed, faults=self.faults, columns=columns, notes=self.notes)


def keep_bug(name: str, caught: bool) -> None:
    """The same of a seeded bug."""
    _add(bug=name, caught=caught)


def _add(**line: Any) -> None:
    place = os.environ.get(PLACE)
    if not place:
        return
    Path(place).mkdir(parents=True, exist_ok=True)
    # Without the load, which moves, and the kernel's builder.
    here = describe_machine().partition(", load")[0].partition("-")[0]
    with (Path(place) / FILE).open("a") as file:
        file.write(json.dumps({"at": format_time(datetime.now(UTC)), "machine": here, **line}) + "\n")


def require_good(report: CampaignReport) -> None:
    """Print and keeps the figures. Raises AssertionError with all of them where anything was broken."""
    print(f"\n{report.text()}")
    report.keep()
    assert sum(report.faults.values()) > 0, f"no fault was injected: nothing was shown\n{report.text()}"
    assert report.good, report.text()
