"""`python -m controller`: controller process. Started by its Deployment in crewyard-system."""

import asyncio
import logging
import os
import socket
import sys

import structlog

from controller.config import ConfigError, ControllerConfig, parse
from controller.leader_election import LeaderElection
from controller.process import ControllerProcess
from controller.runtime.recorder import COMPONENT
from controller.signals import stop_on_signal
from kube import python_gc
from kube.client import KubeClient
from kube.owned_directory import own_temporary_directory


def _logging(level: str) -> None:
    number = logging.getLevelName(level.upper())
    logging.basicConfig(level=number, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


async def _run(config: ControllerConfig) -> None:
    stop = asyncio.Event()
    stop_on_signal(stop)
    kube = await KubeClient.connect(config.namespace, COMPONENT)
    identity = f"{socket.gethostname()}-{os.getpid()}"
    # While slow calls have all connections, for example at an admission webhook, renewals go on.
    leases = kube.apart()
    election = LeaderElection(leases, identity) if config.leader_election else None
    process = ControllerProcess(kube, config, election)
    pages = await process.serve()
    python_gc.freeze_startup_objects()
    try:
        await process.run(stop)
    finally:
        await pages.cleanup()
        await leases.close()
        await kube.close()


def main() -> int:
    """Run until SIGTERM. Exit codes: 0 after SIGTERM, 2 for invalid settings, 1 when a task failed."""
    try:
        config = parse(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _logging(config.log_level)
    with own_temporary_directory():
        asyncio.run(_run(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
