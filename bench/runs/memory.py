"""Resident memory of controller and facade, read from their own /proc, before and after fifty runs."""

from bench.lib.finding import Finding
from bench.lib.installation import Ground

SYSTEM = "crewyard-system"
RUNS = 50


async def resident(ground: Ground, deployment: str) -> float:
    """MiB of the process of one of our Deployments."""
    shown = await ground.yard.kubectl(
        "-n", SYSTEM, "exec", f"deploy/{deployment}", "--", "cat", "/proc/1/status"
    )
    line = next(line for line in shown.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def measure(ground: Ground) -> list[Finding]:
    """Both processes, idle and later."""
    await ground.crew()
    services = ("controller", "api")
    idle = [await resident(ground, f"crewyard-{service}") for service in services]
    runs = [
        (await ground.yard.post("/v1/runs", {"deployment": ground.deployment}))["id"] for _ in range(RUNS)
    ]
    for run in runs:
        await ground.finished(run)
    later = [await resident(ground, f"crewyard-{service}") for service in services]
    return [
        Finding(
            "memory",
            f"memory of the {service}",
            "MiB",
            fact=f"{one:.0f} MiB idle, {two:.0f} MiB after {RUNS} runs",
        )
        for service, one, two in zip(services, idle, later, strict=True)
    ]
