"""Resident memory of controller and API server, from their /proc, before and after fifty runs."""

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation

SYSTEM = "crewyard-system"
RUN_COUNT = 50


async def resident_mib(installation: MeasuredInstallation, deployment: str) -> float:
    """Return the MiB of the process of one of Crewyard's Deployments."""
    status = await installation.testbed.kubectl(
        "-n", SYSTEM, "exec", f"deploy/{deployment}", "--", "cat", "/proc/1/status"
    )
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure both processes, idle and after the runs."""
    await installation.crew()
    services = ("controller", "api")
    idle = [await resident_mib(installation, f"crewyard-{service}") for service in services]
    runs = [
        (await installation.testbed.post("/v1/runs", {"deployment": installation.deployment}))["id"]
        for _ in range(RUN_COUNT)
    ]
    for run in runs:
        await installation.finished(run)
    later = [await resident_mib(installation, f"crewyard-{service}") for service in services]
    return [
        Finding(
            "memory",
            f"memory of the {service}",
            "MiB",
            fact=f"{idle_mib:.0f} MiB idle, {later_mib:.0f} MiB after {RUN_COUNT} runs",
        )
        for service, idle_mib, later_mib in zip(services, idle, later, strict=True)
    ]
