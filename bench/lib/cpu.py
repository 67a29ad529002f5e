"""CPU time of controller and API server so far, from their metrics. Called by `bench.runs.drain`."""

from bench.lib.installation import MeasuredInstallation
from bench.runs.writes import metric_sum

PROCESSES = ("controller", "api")
_PORTS = {"controller": 9090, "api": 8080}


async def process_cpu_seconds(installation: MeasuredInstallation) -> tuple[float, float]:
    """Return the CPU seconds of the controller and of the API server since their start."""
    values = []
    for name in PROCESSES:
        service = f"/api/v1/namespaces/crewyard-system/services/crewyard-{name}:{_PORTS[name]}"
        text = await installation.testbed.kubectl("get", "--raw", f"{service}/proxy/metrics")
        values.append(metric_sum(text, "process_cpu_seconds_total"))
    return values[0], values[1]
