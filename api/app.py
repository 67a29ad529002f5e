"""Composition root of the API server. Called by `python -m api` and by tests."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NoReturn

from aiohttp import web
from aiohttp.typedefs import Middleware

from api import cors, health
from api.auth.api_keys import Keyring, StoredKey
from api.auth.providers import TokenProviders
from api.auth.revocation import RevocationWatcher
from api.build_context.upload import ContextFetcher
from api.config import ApiConfig
from api.console import routes as console
from api.console import sign_in
from api.errors import HttpApiError
from api.http import request_body
from api.http.caller_shares import ByteBudget, CallerSlots
from api.internal import routes as internal
from api.maintenance import loops
from api.metrics import ApiMetrics
from api.openapi import routes as openapi
from api.ratelimit.best_plan import BestPlan
from api.ratelimit.limiter import RateLimiter
from api.routing import middleware
from api.services import SERVICES, ApiServices
from api.store.index.api_keys import KeyRow
from api.store.index.storage_stats import StorageStats
from api.store.store import Store
from api.streaming.fanout import RunFeeds
from api.streaming.registry import StreamRegistry
from api.v1.endpoints import ENDPOINTS
from api.v1.uploads import routes as uploads
from api.webhooks import routes as webhooks
from http_server.connections import max_connections
from internal_tls import ports
from kube.client import KubeClient

MAX_DOWNLOADS, MAX_DOWNLOADS_PER_CALLER = 256, 32
"""Logs and files that are being sent, of all callers and of one."""
MAX_BODY_BYTES, MAX_BODY_BYTES_PER_CALLER = 128 << 20, 16 << 20
"""Bodies that are being read, of all callers and of one."""
BODY_WAIT_SECONDS = 30.0


def _clock() -> datetime:
    return datetime.now(UTC)


def make_app(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    fixed_keys: Mapping[str, StoredKey] | None = None,
    now: Callable[[], datetime] = _clock,
) -> web.Application:
    """Return the complete application: client routes, pod routes and background tasks.

    `fixed_keys` come from the installation's settings; all other keys are in the index.
    The caller opens and closes `store` and `kube`; the application cancels its tasks on cleanup.
    """
    progress = loops.ProjectionProgress()
    app = make_client_app(config, store, kube, fixed_keys, now, lambda: progress.ready)
    metrics = app[SERVICES].metrics
    metrics.watch_projection(progress.silent_seconds, lambda: store.leader.leading)
    internal.add_routes(
        app,
        config,
        store,
        kube,
        lambda state: metrics.claims.labels(state).inc(),
        metrics.limit_reached,
        lambda state: metrics.questions.labels(state).inc(),
    )
    failed = metrics.background_failures
    app.cleanup_ctx.append(
        loops.cleanup_context(
            config,
            store,
            kube,
            progress,
            lambda work: failed.labels(work).inc(),
            lambda: metrics.questions.labels("answered").inc(),
            lambda status: metrics.notification_attempts.labels(status).inc(),
            lambda result, count: metrics.trace_exports.labels(result).inc(count),
        )
    )
    return app


def make_client_app(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    fixed_keys: Mapping[str, StoredKey] | None = None,
    now: Callable[[], datetime] = _clock,
    caught_up: Callable[[], bool] = lambda: True,
) -> web.Application:
    """Return an application with the client routes only; it starts no background loops."""
    services = _services(config, store, kube, fixed_keys or {}, now, caught_up)
    _observe(services)
    app = web.Application(
        middlewares=_middlewares(config),
        client_max_size=request_body.max_body_bytes(config.limits.input_bytes),
    )
    app[SERVICES] = services
    app.on_response_prepare.append(middleware.add_headers)
    if config.cors_origins:
        app.on_response_prepare.append(cors.add_headers(config.cors_origins))
    _mount_routes(app, config)

    async def close_streams(_: web.Application) -> None:
        services.streams.close()

    async def close(_: web.Application) -> None:
        await services.limiter.close()

    app.on_shutdown.append(close_streams)
    app.on_cleanup.append(close)
    app.cleanup_ctx.append(services.revocation.run)
    return app


def _services(
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    fixed_keys: Mapping[str, StoredKey],
    now: Callable[[], datetime],
    caught_up: Callable[[], bool],
) -> ApiServices:
    async def find_key(key_id: str) -> StoredKey | None:
        row = await store.keys.get(key_id)
        return None if row is None else _stored_key(row)

    feeds = RunFeeds(store.events)
    streams = StreamRegistry(feeds.poll, max_connections() * 9 // 10)
    tokens = TokenProviders.from_settings(
        config.identity,
        kube,
        store.workflows,
        config.sign_in,
        config.served_namespaces,
        store.projects.places if config.namespaces else None,
    )
    return ApiServices(
        config=config,
        store=store,
        kube=kube,
        keyring=Keyring(fixed_keys, find_key, lambda: store.database.generation),
        tokens=tokens,
        revocation=RevocationWatcher(streams, store.keys, tokens, now),
        limiter=RateLimiter(config.rate_limit_url),
        metrics=ApiMetrics(),
        streams=streams,
        feeds=feeds,
        best_plan=BestPlan(store.projects.plans, config.plans),
        context_fetcher=ContextFetcher(config, store),
        downloads=CallerSlots(MAX_DOWNLOADS, MAX_DOWNLOADS_PER_CALLER),
        bodies=ByteBudget(MAX_BODY_BYTES, MAX_BODY_BYTES_PER_CALLER, BODY_WAIT_SECONDS),
        caught_up=caught_up,
        now=now,
    )


def _stored_key(row: KeyRow) -> StoredKey:
    return StoredKey(
        key_id=row.id,
        hash=row.hash,
        name=row.name,
        scopes=row.scopes,
        projects=row.projects,
        plan=row.plan,
        expires_at=row.expires_at,
        revoked=row.revoked_at is not None,
    )


def _observe(services: ApiServices) -> None:
    """Connect the metrics and the audit log with what they record."""
    config, store, metrics = services.config, services.store, services.metrics
    metrics.claims_given_up.set_function(lambda: store.claims.failed_writes)

    def counted(read: Callable[[], int]) -> Callable[[], float]:
        """Return what the leader has counted last: a replica that leads no more has an old number."""
        return lambda: float(read() if store.leader.leading else 0)

    metrics.watch_storage(lambda: store.storage_meter.last if store.leader.leading else StorageStats())
    metrics.traces_waiting.set_function(counted(lambda: store.trace_exports.waiting))
    metrics.notifications_pending.set_function(counted(lambda: store.deliveries.pending))
    metrics.notifications_failing.set_function(counted(lambda: store.deliveries.failing))
    local = config.database_url is None or config.blobs_url is None
    metrics.watch_volume(config.data if local else None)
    store.audit.count = lambda outcome: metrics.audit_records.labels(outcome).inc()
    services.kube.before_write = store.audit.record_ahead
    store.trace_exports.enabled = config.telemetry is not None


def _middlewares(config: ApiConfig) -> list[Middleware]:
    """Return the middlewares, the outermost first."""
    return [
        middleware.observe,
        *([cors.preflight(config.cors_origins)] if config.cors_origins else []),
        *([ports.separate(config.pod_tls.plain, _refuse)] if config.pod_tls.directory is not None else []),
        middleware.admit,
    ]


def _refuse(refused: ports.PortRefusal) -> NoReturn:
    raise HttpApiError(refused.status, refused.message)


def _mount_routes(app: web.Application, config: ApiConfig) -> None:
    health.mount(app)
    for endpoint in ENDPOINTS:
        endpoint.mount(app)
    uploads.add_content_route(app)
    webhooks.mount(app)
    openapi.mount(app, config.public_url)
    sign_in.add_routes(app)
    console.add_routes(app)
