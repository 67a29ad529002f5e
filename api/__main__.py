"""`python -m api`: the facade as a process; `… backup`: a copy of its store; `… key`: a new admin key.

Settings from the environment (docs/settings.md).
"""

import asyncio
import logging
import os
import signal
import sys

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from api import config as settings
from api.app import make_app
from api.auth import bootstrap_key
from api.auth.api_keys import Key, parse_fixed
from api.http import server
from api.maintenance import backup
from api.store.errors import StoreUnavailable
from api.store.store import Store
from kube import gc_tuning
from kube.client import Kube

SHUTDOWN_SECONDS = 10.0
"""How long requests under way may take once the service was told to stop; its pod has 20 s."""


def no_garbage(record: logging.LogRecord) -> bool:
    """Whether a line of the HTTP server is worth its place: what is no HTTP is answered 400, no failure."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def set_up_logs(level: str) -> None:
    """One JSON object a line on stdout, also for what libraries log."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    # Whoever can reach the port could fill the log with tracebacks.
    logging.getLogger("aiohttp.server").addFilter(no_garbage)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # The access line is ours (api.routing.middleware): theirs would repeat it, with signed addresses in it.
    logging.getLogger("aiohttp.access").setLevel(logging.CRITICAL)


async def serve(config: settings.Config, keys: dict[str, Key]) -> web.Application:
    """The application with its store and its connection, both closed after it."""
    store = await Store.open(
        config.data, config.namespace, config.database_url, config.blobs_url, config.limits
    )
    kube = await Kube.connect(config.namespace, field_manager="crewyard-api")
    app = make_app(config, store, kube, keys)

    async def close(_: web.Application) -> None:
        await kube.close()
        await store.close()

    app.on_cleanup.append(close)
    gc_tuning.settle()
    return app


async def run(config: settings.Config, keys: dict[str, Key]) -> None:
    """Serves until SIGTERM or SIGINT."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.serve(serve(config, keys), "0.0.0.0", config.port, SHUTDOWN_SECONDS, stop.wait)


def main() -> None:
    """Makes a backup or a key if asked to; without a word runs until SIGTERM or SIGINT.

    Event streams end first, then requests under way, then the tasks.
    """
    if sys.argv[1:] and sys.argv[1] not in ("backup", "key"):
        # Beside the service that runs in its pod another one would take the cluster up.
        print("usage: python3 -m api [backup TARGET | key [NAME]]", file=sys.stderr)
        sys.exit(2)
    try:
        config = settings.parse(os.environ)
        keys = parse_fixed(os.environ.get("CREWYARD_ADMIN_KEYS", ""))
    except (settings.ConfigError, ValueError) as error:
        sys.exit(str(error))
    if sys.argv[1:2] == ["backup"]:
        sys.exit(backup.main(config.data, config.database_url, config.blobs_url, sys.argv[2:]))
    if sys.argv[1:2] == ["key"]:
        sys.exit(bootstrap_key.main(config.data, config.namespace, config.database_url, sys.argv[2:]))
    set_up_logs(config.log_level)
    try:
        asyncio.run(run(config, keys))
    except StoreUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
