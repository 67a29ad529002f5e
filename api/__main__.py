"""Entry point: `python -m api` serves; `… backup` copies the store; `… key` creates an admin key.

Reads its settings from the environment (docs/settings.md).
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from api import config as settings
from api.app import make_app
from api.auth.api_keys import StoredKey, parse_fixed
from api.http import server
from api.maintenance import backup
from api.maintenance.loops import CONNECTIONS_PER_NAMESPACE
from api.services import SERVICES
from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.v1.keys import bootstrap_key
from http_server.connections import ClientConnections
from internal_tls.certificate import CertificateFiles
from internal_tls.site import TlsSite
from kube import python_gc
from kube.client import KubeClient
from kube.owned_directory import own_temporary_directory

SHUTDOWN_TIMEOUT_SECONDS = 10.0
"""Grace period for requests in flight after SIGTERM; the pod has 20 s."""


def filter_malformed_requests(record: logging.LogRecord) -> bool:
    """Drop error records caused by malformed requests; the client already got a 400."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def configure_logging(level: str) -> None:
    """Log one JSON object per line to stdout, including records of libraries."""
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
    # Otherwise any client could fill the log with tracebacks.
    logging.getLogger("aiohttp.server").addFilter(filter_malformed_requests)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # api.routing.middleware logs each request; aiohttp would log it again, with signed URLs.
    logging.getLogger("aiohttp.access").setLevel(logging.CRITICAL)


async def serve(config: settings.ApiConfig, keys: dict[str, StoredKey]) -> web.Application:
    """Return the application; it closes its store and its Kubernetes client on cleanup."""
    store = await Store.open(
        config.data, config.namespace, config.database_url, config.blobs_url, config.limits
    )
    kube = await KubeClient.connect(
        config.namespace,
        field_manager="crewyard-api",
        extra_connections=CONNECTIONS_PER_NAMESPACE * len(config.served_namespaces),
    )
    app = make_app(config, store, kube, keys)

    async def close(_: web.Application) -> None:
        await kube.close()
        await store.close()

    app.on_cleanup.append(close)
    python_gc.freeze_startup_objects()
    return app


async def run(config: settings.ApiConfig, keys: dict[str, StoredKey]) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tls = tls_site(config) if config.pod_tls.directory is not None else None
    await server.serve(serve(config, keys), "0.0.0.0", config.port, SHUTDOWN_TIMEOUT_SECONDS, stop.wait, tls)


def tls_site(
    config: settings.ApiConfig,
) -> Callable[[web.AppRunner, ClientConnections], web.BaseSite]:
    """Return what makes the listener of the TLS port for pods."""

    def make(runner: web.AppRunner, connections: ClientConnections) -> web.BaseSite:
        assert config.pod_tls.directory is not None
        files, metrics = CertificateFiles(config.pod_tls.directory), runner.app[SERVICES].metrics
        return TlsSite(
            runner, "0.0.0.0", config.pod_tls.port, connections.make_connection, files, metrics.tls
        )

    return make


def main() -> None:
    """Run the subcommand, or serve until SIGTERM or SIGINT.

    On shutdown, event streams end first, then requests in flight, then background tasks.
    """
    if sys.argv[1:] and sys.argv[1] not in ("backup", "key"):
        # A mistyped command must not start a second server next to the one in the pod.
        print("usage: python3 -m api [backup TARGET | key [NAME]]", file=sys.stderr)
        sys.exit(2)
    try:
        config = settings.parse(os.environ)
        keys = parse_fixed(os.environ.get("CREWYARD_ADMIN_KEYS", ""))
    except (settings.ApiConfigError, ValueError) as error:
        sys.exit(str(error))
    if sys.argv[1:2] == ["backup"]:
        sys.exit(backup.main(config.data, config.database_url, config.blobs_url, sys.argv[2:]))
    if sys.argv[1:2] == ["key"]:
        sys.exit(bootstrap_key.main(config.data, config.namespace, config.database_url, sys.argv[2:]))
    configure_logging(config.log_level)
    try:
        with own_temporary_directory():
            asyncio.run(run(config, keys))
    except StoreUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
