"""Processor time that controller and facade have used so far, by their own metrics. For `bench.runs.drain`."""

from bench.lib.installation import Ground
from bench.runs.writes import counted

PROCESSES = ("controller", "api")
_PORTS = {"controller": 9090, "api": 8080}


async def seconds(ground: Ground) -> tuple[float, float]:
    """Of the controller's process and of the facade's, since each began."""
    found = []
    for name in PROCESSES:
        service = f"/api/v1/namespaces/crewyard-system/services/crewyard-{name}:{_PORTS[name]}"
        text = await ground.yard.kubectl("get", "--raw", f"{service}/proxy/metrics")
        found.append(counted(text, "process_cpu_seconds_total"))
    return found[0], found[1]
