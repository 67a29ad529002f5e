"""The pods' calls, assembled. Called by `api.app`."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from api.config import Config
from api.internal import artifacts, builds, claim, events, result
from api.internal.context import Handler, Yard, answered
from api.store.store import Store
from kube.client import Kube

Call = Callable[[Yard, web.Request], Awaitable[web.StreamResponse]]


def add(
    app: web.Application,
    config: Config,
    store: Store,
    kube: Kube,
    claimed: Callable[[str], None] = lambda state: None,
) -> None:
    """Adds the routes under `/internal/v1`. They answer `{"error": …}` and need no bearer key but a token.

    `claimed` is told how each claim was answered: granted, refused or wait.
    """
    yard = Yard(config, store, kube, claimed)

    def bound(call: Call) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await call(yard, request)

        return answered(handler)

    runs = "/internal/v1/runs/{run}"
    app.router.add_post(f"{runs}/claim", bound(claim.claim))
    app.router.add_post(f"{runs}/events", bound(events.events))
    app.router.add_put(f"{runs}/artifacts/{{name:(?s:.+)}}", bound(artifacts.put))
    app.router.add_post(f"{runs}/result", bound(result.result))
    app.router.add_post("/internal/v1/builds/{deployment}/logs", bound(builds.logs))
    app.router.add_get("/internal/v1/uploads/{upload}", bound(builds.upload), allow_head=False)
