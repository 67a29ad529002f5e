"""The table of docs/figures.md, generated from bench/measurements by `python -m bench.lib.figures_page`.

Each row is a finding as measured, with its goals (`bench.lib.goals`). A unit test checks that the page is
current.
"""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.lib import results
from bench.lib.goals import goals_of
from bench.lib.statistics import MIN_PAIRS_FOR_P99

PAGE = Path(__file__).parents[2] / "docs/figures.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
HEAD = (
    "| what | ours | peer, in the same run | ratio | goal | by, load, day |",
    "| --- | --- | --- | --- | --- | --- |",
)
_LOAD = re.compile(r"load ([\d.]+)")


def row(record: Mapping[str, Any], by: str) -> str:
    """Return a finding's row. Pure."""
    unit, peer = str(record.get("unit", "")), str(record.get("peer", ""))
    our_text, peer_text, ratio = str(record.get("fact", "")), peer, ""
    if "comparison" in record:
        comparison = record["comparison"]
        has_p99 = comparison["pairs"] >= MIN_PAIRS_FOR_P99
        our_text = _both(comparison["ours"], comparison["ours_p99"] if has_p99 else None, unit)
        peer_text = f"{peer}: {_both(comparison['peer'], comparison['peer_p99'] if has_p99 else None, unit)}"
        spread = f"{comparison['ratio_min']:.2f} to {comparison['ratio_max']:.2f}, n={comparison['pairs']}"
        ratio = f"{_ratio(comparison['ratio'])} ({spread})"
    elif "values" in record:
        values = record["values"]
        our_text = _number(statistics.median(values), unit)
        if len(values) > 1:
            our_text += f" ({_number(min(values), '')} to {_number(max(values), unit)}, n={len(values)})"
    if record.get("fact") and ("comparison" in record or "values" in record):
        our_text += f"; {record['fact']}"
    goals = "<br>".join(goals_of(record))
    return f"| {record['what']} | {our_text} | {peer_text} | {ratio} | {goals} | {by} |"


def table(measurements: Iterable[Mapping[str, Any]], order: Sequence[str]) -> str:
    """Return all rows, measurements in the order of their names. Pure."""
    position = {name: number for number, name in enumerate(order)}
    lines = list(HEAD)
    for measurement in sorted(
        measurements,
        key=lambda measurement: (position[measurement["command"].partition("=")[0]], measurement["command"]),
    ):
        load = _LOAD.search(measurement["machine"])
        day = measurement["begun"].partition("T")[0]
        by = f"`{measurement['command']}`, {load[1] if load else '?'}, {day}"
        lines += [row(record, by) for record in measurement["findings"]]
    return "\n".join(lines) + "\n"


def with_table(page: str, new_table: str) -> str:
    """Return the page with this table. Raises ValueError if the page lacks the markers."""
    before, begin, after_begin = page.partition(BEGIN)
    _, end, after = after_begin.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no {BEGIN.strip()} … {END}")
    return before + begin + "\n" + new_table + "\n" + end + after


def _both(median: float, p99: float | None, unit: str) -> str:
    return _number(median, unit) + (f", p99 {_number(p99, unit)}" if p99 is not None else "")


def _number(value: float, unit: str) -> str:
    digits = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{digits} {unit}".rstrip()


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def main() -> None:
    """Write the page."""
    from bench.__main__ import MEASURES

    PAGE.write_text(with_table(PAGE.read_text(), table(results.read_all(), list(MEASURES))))


if __name__ == "__main__":
    main()
