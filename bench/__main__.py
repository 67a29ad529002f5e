"""Measurements against their peers (`make bench`): the given ones, or the default selection.

python -m bench               the default selection, about half an hour
python -m bench L1 T1         these
python -m bench T1=500        a measurement with another count, if it supports one
python -m bench --keep L1     the same, and store its numbers for the documentation (bench/measurements)
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.api import console, lists, requests, streams
from bench.hollow import drain as hollow_drain
from bench.hollow import memory as hollow_memory
from bench.hollow import rates, sizes
from bench.lib import machine, results
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.runs import (
    artifact,
    drain,
    first_line,
    memory,
    million_lines,
    next_run,
    post_run,
    print_to_client,
    start,
    tenants,
    warm,
    writes,
)
from bench.sources import poll, push, redeploy, rollback, schedules

RESULTS_DIRECTORY = Path(__file__).parent / "results"
Measure = Callable[..., Awaitable[list[Finding]]]

MEASURES: dict[str, Measure] = {
    "memory": memory.measure,
    "L1": start.one_by_one,
    "L2": start.in_flight,
    "L4": post_run.measure,
    "F1": lists.measure,
    "F2": requests.request_rates,
    "F3": requests.apiserver_requests,
    "G3": rollback.measure,
    "L5": first_line.measure,
    "W1": warm.first_line("langgraph"),
    "W1crewai": warm.first_line("crewai"),
    "T1": drain.measure,
    "T2": writes.measure,
    "T5": next_run.measure,
    "S1": print_to_client.measure,
    "S2": million_lines.measure,
    "S3": streams.measure,
    "S4": streams.catch_up,
    "X11": tenants.measure,
    "A1": artifact.measure,
    "C1": console.measure,
    "G1": push.measure,
    "G2": poll.measure,
    "G4": schedules.measure,
    "B1": redeploy.code_only("langgraph", 7),
    "B1crewai": redeploy.code_only("crewai", 5),
    "B2": redeploy.dependencies("crewai", 3),
    "B4": redeploy.cold_start,
    "B4langgraph": redeploy.first_builds,
    "B6": redeploy.with_waiting_pod("langgraph", 11),
    "B5": redeploy.without_dependencies,
    "T1hollow": hollow_drain.measure,
    "T3": hollow_memory.measure,
    "T4": rates.measure,
    "T6": sizes.measure,
}
HOLLOW_MEASURES = ("T1hollow", "T3", "T4", "T6")
"""Measurements with their own control plane; they need only the dev cluster's binaries."""
LONG_MEASURES = ("W1crewai", "S2", "X11", "B1crewai", "B2", "B4", "B4langgraph", *HOLLOW_MEASURES)
"""Measurements outside the default selection."""
MEASURES_WITH_COUNT = ("L1", "W1", "W1crewai", "T1", "S2", "S3", "G2", "G4", "C1", *HOLLOW_MEASURES)
"""Measurements that accept a count."""


async def main(counts: dict[str, int | None], keep: bool = False) -> bool:
    """Run the measurements, print one line per finding, store all numbers. Return whether all succeeded."""
    installation = await MeasuredInstallation.open() if set(counts) - set(HOLLOW_MEASURES) else None
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine.describe_machine()}", flush=True)
    records: list[dict[str, Any]] = []
    failures = []
    try:
        for name, count in counts.items():
            started, machine_before = datetime.now(UTC), machine.describe_machine()
            try:
                findings = await MEASURES[name](installation, *([] if count is None else [count]))
            except Exception as error:
                # Report a failed measurement and continue with the others.
                failures.append(name)
                print(f"{name}: failed: {type(error).__name__}: {str(error)[:500]}", flush=True)
                continue
            if keep:
                results.write(
                    name, count, started, machine_before, [finding.record() for finding in findings]
                )
            for finding in findings:
                print(finding.line(), flush=True)
                records.append(
                    {**finding.record(), "begun": started.isoformat(), "machine": machine.describe_machine()}
                )
    finally:
        if installation is not None:
            await installation.close()
    if records:
        RESULTS_DIRECTORY.mkdir(exist_ok=True)
        file = RESULTS_DIRECTORY / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
        file.write_text(json.dumps({"machine": machine.describe_machine(), "findings": records}, indent=1))
        print(f"all numbers: {file}", flush=True)
    return not failures


def parse(arguments: list[str]) -> dict[str, int | None]:
    """Return names and counts of an argument list. Raises ValueError that names the invalid argument."""
    counts: dict[str, int | None] = {}
    for argument in arguments or [name for name in MEASURES if name not in LONG_MEASURES]:
        name, separator, count = argument.partition("=")
        if name not in MEASURES:
            raise ValueError(f"unknown measurement {name!r}; choose from {', '.join(MEASURES)}")
        if separator and (name not in MEASURES_WITH_COUNT or not count.isdigit()):
            raise ValueError(f"{argument!r}: only these accept a count: {', '.join(MEASURES_WITH_COUNT)}")
        counts[name] = int(count) if separator else None
    return counts


if __name__ == "__main__":
    try:
        keep = sys.argv[1:2] == ["--keep"]
        chosen = parse(sys.argv[2:] if keep else sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
    sys.exit(0 if asyncio.run(main(chosen, keep)) else 1)
