"""Redis for the request counts of `make up HA=1`, on the bridge address, without persistence."""

from dev.packages import program_path
from dev.process.probe import TcpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, REDIS_PORT, Settings


def process_spec(settings: Settings, password: str) -> ProcessSpec:
    """Return the process that `up` starts."""
    file = settings.configuration / "redis.conf"
    lines = (
        f"bind {BRIDGE_ADDRESS}",
        f"port {REDIS_PORT}",
        f"requirepass {password}",
        'save ""',
        "appendonly no",
        "maxmemory 64mb",
        "maxmemory-policy volatile-ttl",
    )
    return ProcessSpec(
        name="redis",
        argv=(program_path("redis-server"), str(file)),
        files={file: "".join(f"{line}\n" for line in lines)},
        probe=TcpProbe(BRIDGE_ADDRESS, REDIS_PORT),
    )


def url(password: str) -> str:
    """Return the URL for the API server."""
    return f"redis://:{password}@{BRIDGE_ADDRESS}:{REDIS_PORT}"
