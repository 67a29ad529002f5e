"""`POST /internal/v1/warm/{pod}/wait`: a pod that was started before its run waits for one.

Called by `api.internal.routes`. The answer names the run and has the token with which the pod claims it, as
any other pod: the claim, not this answer, makes a crew start at most once. A pod that lost it asks again.
"""

from aiohttp import web

from api.internal.context import (
    InternalContext,
    PodApiError,
    authenticate_object,
    int_field,
    read_json,
    text_field,
)
from crds import pod_tokens

PROTOCOLS = (1,)
MAX_WAIT_SECONDS = 20
"""Less than the timeout of the runner's call."""


async def wait(context: InternalContext, request: web.Request) -> web.Response:
    """Respond with the run of the pod as soon as it has one, else with waiting; the pod then asks again."""
    name = request.match_info["pod"]
    namespace = authenticate_object(context, request, "warm", name).namespace
    body = await read_json(request)
    if int_field(body, "protocol") not in PROTOCOLS:
        raise PodApiError(400, f"protocol must be one of {PROTOCOLS}")
    seconds = min(int_field(body, "wait_seconds"), MAX_WAIT_SECONDS)
    bound = await context.warm_pods[namespace].bound_run(name, text_field(body, "pod_uid"), seconds)
    if bound is None:
        return web.json_response({"state": "waiting"})
    token = pod_tokens.mint(
        context.config.token_key, "run", namespace, bound.run, bound.run_uid, bound.expires
    )
    return web.json_response({"state": "bound", "run": bound.run, "run_uid": bound.run_uid, "token": token})
