"""`python -m controller`: the controller's process. Started by its Deployment in crewyard-system."""

import asyncio
import logging
import os
import sys

import structlog

from controller.config import Config, ConfigError, parse
from controller.process import Process
from controller.runtime.recorder import COMPONENT
from controller.signals import end_by_signal
from kube import gc_tuning
from kube.client import Kube


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


async def _run(config: Config) -> None:
    stop = asyncio.Event()
    end_by_signal(stop)
    kube = await Kube.connect(config.namespace, COMPONENT)
    process = Process(kube, config)
    pages = await process.serve()
    gc_tuning.settle()
    try:
        await process.run(stop)
    finally:
        await pages.cleanup()
        await kube.close()


def main() -> int:
    """Runs until SIGTERM. 0 after it, 2 where the environment is wrong, 1 where a part broke."""
    try:
        config = parse(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _logging(config.log_level)
    asyncio.run(_run(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
