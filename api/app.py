"""The facade, put together: the one place that knows all parts. Called by `python -m api` and by tests."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from aiohttp import web

from api import health
from api.auth.api_keys import Key, Keyring
from api.auth.providers import Tokens
from api.auth.revocation import Holders
from api.build_context.upload import Contexts
from api.config import Config
from api.console import routes as console
from api.http import request_body, server
from api.internal import routes as internal
from api.maintenance import loops
from api.metrics import Metrics
from api.openapi import routes as openapi
from api.ratelimit.limiter import RateLimiter
from api.ratelimit.plan import BestPlan
from api.routing import middleware
from api.services import SERVICES, Services
from api.store.store import Store
from api.streaming.fanout import Feeds
from api.streaming.registry import Streams
from api.v1.endpoints import ENDPOINTS
from api.v1.uploads import routes as uploads
from api.webhooks import routes as webhooks
from kube.client import Kube


def _clock() -> datetime:
    return datetime.now(UTC)


def make_app(
    config: Config,
    store: Store,
    kube: Kube,
    fixed_keys: Mapping[str, Key] | None = None,
    now: Callable[[], datetime] = _clock,
) -> web.Application:
    """The application, ready to run: what clients and pods call, and the tasks behind it.

    `fixed_keys` are the installation's own keys; others are in the index. The caller
    opens and closes store and connection; the application's tasks end with it.
    """
    progress = loops.Progress()
    app = client_side(config, store, kube, fixed_keys, now, lambda: progress.ready)
    metrics = app[SERVICES].metrics
    metrics.follow(progress.silence, lambda: store.leader.leading)
    internal.add(app, config, store, kube, lambda state: metrics.claims.labels(state).inc())
    failed = metrics.background_failures
    app.cleanup_ctx.append(
        loops.context(config, store, kube, progress, lambda work: failed.labels(work).inc())
    )
    return app


def client_side(
    config: Config,
    store: Store,
    kube: Kube,
    fixed_keys: Mapping[str, Key] | None = None,
    now: Callable[[], datetime] = _clock,
    caught_up: Callable[[], bool] = lambda: True,
) -> web.Application:
    """What clients call, alone: it shows what is stored, and nothing changes by itself."""

    async def look_up(key_id: str) -> Key | None:
        row = await store.keys.get(key_id)
        if row is None:
            return None
        return Key(
            key_id=row.id,
            hash=row.hash,
            name=row.name,
            scopes=row.scopes,
            projects=row.projects,
            plan=row.plan,
            expires_at=row.expires_at,
            revoked=row.revoked_at is not None,
        )

    app = web.Application(
        middlewares=[middleware.observe, middleware.admit],
        client_max_size=request_body.largest(config.limits.input_bytes),
    )
    feeds = Feeds(store.events)
    streams = Streams(feeds.look, server.most() * 9 // 10)
    tokens = Tokens.of(config.identity, kube, store.workflows)
    watched = Holders(streams, store.keys, tokens, now)
    limiter = RateLimiter(config.rate_limit_url)
    metrics = Metrics()
    metrics.claims_given_up.set_function(lambda: store.claims.given_up)
    metrics.show(store.measure)
    local = config.database_url is None or config.blobs_url is None
    metrics.watch_volume(config.data if local else None)
    app[SERVICES] = Services(
        config=config,
        store=store,
        kube=kube,
        keyring=Keyring(fixed_keys or {}, look_up, lambda: store.database.generation),
        tokens=tokens,
        holders=watched,
        limiter=limiter,
        metrics=metrics,
        streams=streams,
        feeds=feeds,
        best_plan=BestPlan(store.projects.plans, config.plans),
        contexts=Contexts(config, store),
        caught_up=caught_up,
        now=now,
    )
    app.on_response_prepare.append(middleware.add_headers)
    health.mount(app)
    for endpoint in ENDPOINTS:
        endpoint.mount(app)
    uploads.mount_content(app)
    webhooks.mount(app)
    openapi.mount(app, config.public_url)
    console.mount(app)

    async def end_streams(_: web.Application) -> None:
        streams.close()

    async def close(_: web.Application) -> None:
        await limiter.close()

    app.on_shutdown.append(end_streams)
    app.on_cleanup.append(close)
    app.cleanup_ctx.append(watched.watching)
    return app
