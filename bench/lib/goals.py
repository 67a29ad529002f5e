"""Goals of the figures, and whether a finding reaches them. Pure.

A goal limits the ratio of a comparison, our median or p99, or a number in a finding's fact, which a pattern
extracts. Called by `bench.lib.figures_page`.
"""

import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.lib.statistics import MIN_PAIRS_FOR_P99, percentile, without_warmup

Record = Mapping[str, Any]
Reader = Callable[[Record], float]


def ratio(record: Record) -> float:
    """Return ours / peer: the median of the pairs' ratios."""
    return float(record["comparison"]["ratio"])


def p99_ratio(record: Record) -> float:
    """Return our p99 / the peer's p99, pooled."""
    comparison = record["comparison"]
    return float(comparison["ours_p99"] / comparison["peer_p99"])


def median(record: Record) -> float:
    """Return our median, in the finding's unit."""
    return float(
        record["comparison"]["ours"] if "comparison" in record else statistics.median(record["values"])
    )


def p99(record: Record) -> float:
    """Return our p99, in the finding's unit."""
    if "comparison" in record:
        return float(record["comparison"]["ours_p99"])
    return percentile(record["values"], 0.99)


def median_difference(record: Record) -> float:
    """Return ours - peer, the median over the pairs."""
    return statistics.median(ours - peer for peer, ours in without_warmup(record["pairs"]))


def fact_number(pattern: str) -> Reader:
    """Return a reader of the number in the pattern's first group in the fact."""

    def read(record: Record) -> float:
        match = re.search(pattern, record.get("fact", ""))
        if match is None:
            raise ValueError(f"no {pattern!r} in the fact of {record['code']} {record['what']}")
        return float(match[1])

    return read


@dataclass(frozen=True)
class Goal:
    """An upper bound, or a lower bound, of what `reading` returns; `words` name it if it is not the ratio.

    `first` is the bound before it was changed; docs/figures.md says why.
    """

    code: str
    what: str
    reading: Reader
    bound: float
    words: str = ""
    least: bool = False
    peer: str = ""
    first: float | None = None

    def concerns(self, record: Record) -> bool:
        """Return whether it applies to this finding: `what` and `peer` are prefixes of the finding's."""
        return (
            record["code"] == self.code
            and str(record["what"]).startswith(self.what)
            and str(record.get("peer", "")).startswith(self.peer)
        )

    def reached(self, record: Record) -> bool:
        """Return whether the finding's number, as printed, is within the bound. Raises ValueError."""
        value = round(self.reading(record), 3)
        return value >= self.bound if self.least else value <= self.bound

    def line(self, record: Record) -> str:
        """Return the text for the table."""
        sign = "≥" if self.least else "≤"
        text = f"{sign} {self.bound:g}{f' {self.words}' if self.words else ''}"
        if self.first is not None:
            text += f" (first {sign} {self.first:g})"
        if self.reading in (p99, p99_ratio) and _value_count(record) < MIN_PAIRS_FOR_P99:
            return f"{text}: too few values for a p99"
        return text if self.reached(record) else f"**{text}: missed**"


def _value_count(record: Record) -> int:
    """Return the number of values behind the figure."""
    return int(record["comparison"]["pairs"] if "comparison" in record else len(record["values"]))


GOALS = (
    Goal("L1", "created", ratio, 1.05),
    Goal("L1", "created", p99_ratio, 1.10, "(p99)"),
    Goal("L2", "", ratio, 1.2, first=1),
    Goal("L3", "", ratio, 0.2),
    Goal("L4", "POST /v1/runs → 201, sqlite", ratio, 3, first=2),
    Goal("L4", "POST /v1/runs → 201, postgres", ratio, 3.5, first=2.5),
    Goal("L4", "", p99, 40, "ms (p99)"),
    Goal("L5", "", median_difference, 40, "ms more"),
    Goal("W1", "", median, 0.08, "s"),
    Goal("W1", "langgraph", ratio, 0.15),
    Goal("W1", "crewai", ratio, 0.03),
    Goal("W2", "langgraph: a waiting", median, 0.2, "% of a core"),
    Goal("T1", "100 Runs", ratio, 1.1, peer="100 Jobs"),
    Goal("T1", "500 Runs", ratio, 1.1, peer="500 Jobs"),
    Goal("T1", "processor time of the controller", median, 25, "ms a Run", first=16),
    Goal("T1", "processor time of the api", median, 35, "ms a Run", first=30),
    Goal("T2", "", fact_number(r"at once ([\d.]+)"), 3, "at once"),
    Goal("T2", "", fact_number(r"queued ([\d.]+)"), 4, "queued"),
    Goal("T3", "processor time of the controller", ratio, 3),
    Goal("memory", "memory of the controller", fact_number(r"([\d.]+) MiB idle"), 110, "MiB idle"),
    Goal(
        "T3",
        "memory of the controller",
        fact_number(r"([\d.]+) of the second"),
        16,
        "KiB a live Run",
        first=8,
    ),
    Goal("T4", "sustained", ratio, 0.8, least=True),
    Goal("T5", "a Run's end", median, 30, "ms"),
    Goal("F1", "GET", fact_number(r"ratio ([\d.]+)"), 1.2, "(p99)"),
    Goal("F1", "by label", fact_number(r"ratio ([\d.]+)"), 1.2, "(p99)"),
    Goal("F1", "its deepest", p99, 25, "ms (p99)"),
    Goal("F2", "GET /v1/runs of 100000, nothing", ratio, 0.5, least=True),
    Goal("F3", "", fact_number(r"^(\d+) during"), 0),
    Goal("S1", "", ratio, 2, first=1),
    Goal("S1", "", p99_ratio, 2, "(p99)", first=0.5),
    Goal("S1", "", p99, 50, "ms (p99)"),
    Goal("S2", "", fact_number(r"lost (\d+)"), 0, "lost"),
    Goal(
        "S3", "5000 streams, a message a second each, ours", fact_number(r"p99 ([\d.]+) ms"), 250, "ms (p99)"
    ),
    Goal(
        "S3", "5000 streams, a message a second each, ours", fact_number(r"([\d.]+) KiB"), 40, "KiB a stream"
    ),
    Goal("S4", "", median, 500, "ms"),
    Goal("X11", "L4", ratio, 1.25),
    Goal("X11", "S1", ratio, 1.25),
    Goal("X11", "W1", ratio, 1.25),
    Goal("X11", "G1", ratio, 1.25),
    Goal("B1", "langgraph: code-only", ratio, 0.167, "(six times as fast)"),
    Goal("B1", "langgraph: code-only", median, 1.2, "s"),
    Goal("B1", "crewai: code-only", ratio, 0.05, "(twenty times as fast)"),
    Goal("B1", "crewai: code-only", median, 1.2, "s"),
    Goal("B2", "crewai: dependencies", ratio, 0.45),
    Goal("B4", "langgraph: first build", ratio, 0.5),
    Goal("B5", "", median, 1.5, "s"),
    Goal("B6", "langgraph", median, 0.5, "s"),
    Goal("B3", "", fact_number(r"^(\d+) digest"), 1, "digest"),
    Goal("G1", "", median, 0.15, "s"),
    Goal("G2", "", ratio, 0.35, first=0.2),
    Goal("G2", "", fact_number(r": ([\d.]+)% of a core"), 10, "% of a core"),
    Goal("G2", "", fact_number(r"(\d+) writes"), 0, "writes"),
    Goal("G4", "", fact_number(r": ([\d.]+)% of a core"), 5, "% of a core"),
    Goal("G3", "rollback", median, 100, "ms"),
    Goal("A1", "1 GiB in the pod → stored in", ratio, 0.7, least=True, peer="copy with a hash", first=0.8),
    Goal("A1", "1 GiB in the pod → stored in a bucket", ratio, 0.5, least=True, first=0.8),
    Goal("A1", "memory of the API server", fact_number(r"in (\d+) MiB"), 32, "MiB more"),
)


def goals_of(record: Record) -> list[str]:
    """Return the goals of this finding, one line each; empty if there are none."""
    return [goal.line(record) for goal in GOALS if goal.concerns(record)]
