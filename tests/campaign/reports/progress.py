"""How far `make campaign` is: a line before each test, and all figures as one table in the end.

A plugin of pytest that `tests/campaign/conftest.py` adds where figures are kept.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.reports.results import FILE, lines, table


def minutes(seconds: float) -> str:
    """`3:07`, or `1:02:03` from an hour on. Pure."""
    whole, rest = divmod(int(seconds), 60)
    hours, left = divmod(whole, 60)
    return f"{hours}:{left:02}:{rest:02}" if hours else f"{left}:{rest:02}"


class CampaignProgress:
    """Counts tests; the table has what was kept since it was made, not what was there before."""

    def __init__(self, place: Path, now: float) -> None:
        self._place, self._begun = place, now
        self._before = len(lines([place])) if (place / FILE).exists() else 0
        self._all = self._now = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many there will be."""
        self._all = len(session.items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """The next one begins."""
        self._now += 1
        elapsed = minutes(time.monotonic() - self._begun)
        test = nodeid.removeprefix("tests/campaign/")
        print(f"\n==> {self._now} of {self._all}, {elapsed} elapsed: {test}", flush=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The table."""
        kept = lines([self._place])[self._before :] if (self._place / FILE).exists() else []
        if kept:
            elapsed = minutes(time.monotonic() - self._begun)
            terminalreporter.section(f"seen in {elapsed}; the figures are in {self._place}")
            terminalreporter.write_line(table(kept))
