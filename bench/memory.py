"""Resident memory of controller and facade, read from their own /proc."""

from bench.crew import BenchCrew
from tests.e2e.yard import Yard, eventually

SYSTEM = "crewyard-system"


async def resident(yard: Yard, deployment: str) -> float:
    """MiB of the process of one of our Deployments."""
    shown = await yard.kubectl("-n", SYSTEM, "exec", f"deploy/{deployment}", "--", "cat", "/proc/1/status")
    line = next(line for line in shown.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def both(yard: Yard) -> tuple[float, float]:
    """MiB of controller and facade."""
    return await resident(yard, "crewyard-controller"), await resident(yard, "crewyard-api")


async def fifty_runs(crew: BenchCrew) -> None:
    """Executes fifty runs."""
    runs = [(await crew.yard.post("/v1/runs", {"deployment": crew.deployment}))["id"] for _ in range(50)]
    for run in runs:
        await eventually(
            lambda run=run: crew.yard.get(f"/v1/runs/{run}"),
            lambda seen: seen["completed_at"] is not None,
            300,
            0.2,
        )
