"""The route table of the internal API. Called by `api.app`."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from api.config import ApiConfig
from api.internal import artifacts, builds, claim, events, input_requests, result
from api.internal.context import Handler, InternalContext, handle_errors
from api.internal.warm import wait
from api.store.store import Store
from api.tenant_limits import OnLimit
from kube.client import KubeClient

PodCall = Callable[[InternalContext, web.Request], Awaitable[web.StreamResponse]]


def add_routes(
    app: web.Application,
    config: ApiConfig,
    store: Store,
    kube: KubeClient,
    on_claim: Callable[[str], None] = lambda state: None,
    on_limit: OnLimit = lambda limit, project: None,
    on_question: Callable[[str], None] = lambda state: None,
) -> None:
    """Add the routes under `/internal/v1`. They take pod tokens instead of API keys.

    `on_claim` is called with the state of each claim: granted, refused or wait; `on_limit` with a limit and
    the project that reached it; `on_question` with the state of a question. Errors are `{"error": …}`.
    """
    context = InternalContext(config, store, kube, on_claim, on_limit, on_question)

    def bind(pod_call: PodCall) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await pod_call(context, request)

        return handle_errors(handler)

    async def close_waits(_: web.Application) -> None:
        for pods in context.warm_pods.values():
            pods.close()

    app.on_shutdown.append(close_waits)
    for pods in context.warm_pods.values():
        app.cleanup_ctx.append(pods.run)
    runs = "/internal/v1/runs/{run}"
    app.router.add_post(f"{runs}/claim", bind(claim.claim))
    app.router.add_post(f"{runs}/events", bind(events.append_events))
    app.router.add_put(f"{runs}/artifacts/{{name:(?s:.+)}}", bind(artifacts.put))
    app.router.add_post(f"{runs}/inputs", bind(input_requests.ask))
    app.router.add_post(f"{runs}/result", bind(result.report_result))
    app.router.add_post("/internal/v1/warm/{pod}/wait", bind(wait.wait))
    app.router.add_post("/internal/v1/builds/{deployment}/logs", bind(builds.append_logs))
    app.router.add_get("/internal/v1/uploads/{upload}", bind(builds.download_upload), allow_head=False)
