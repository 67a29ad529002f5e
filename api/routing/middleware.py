"""Middleware of all requests.

Two middlewares, outermost first: `observe` sets the request id, converts exceptions to error
responses, counts and logs; `admit` authenticates and rate-limits requests below /v1.
Installed by `api.app`.
"""

import re
import secrets
import time
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from api import errors, tenant_limits
from api.auth import authenticate
from api.auth.principal import Caller
from api.http import client_address, responses
from api.ratelimit.limiter import Allowance, client_network
from api.services import SERVICES, ApiServices
from api.store import errors as store_errors
from kube import errors as kube_errors

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REQUEST_ID = web.RequestKey("request_id", str)
CALLER = web.RequestKey("caller", Caller)
ALLOWANCE = web.RequestKey("allowance", Allowance)
RESPONSE_STARTED = web.RequestKey("streamed", bool)
"""Set when the response has started: an error can no longer replace it."""
WAITED = web.RequestKey("waited", bool)
"""Set when the request waits for an event: its time says nothing about the service."""
ANONYMOUS_REQUESTS_PER_MINUTE = 60
"""Requests per minute of a client address without a valid key."""
FAILED_PROOFS_PER_MINUTE = 600
"""Uploads and webhooks per minute of one address whose signature is wrong; right ones are not counted."""
_DISCONNECTED_STATUS = 499
_FAILED_PROOF_STATUSES = (401, 403, 404)
_CLIENT_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_log = structlog.get_logger("api")


def route_template(request: web.Request) -> str:
    """Return the path template of the route; `unmatched` if no route matches."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unmatched"


def is_signed(request: web.Request) -> bool:
    """Return whether the request is authorized by a signature (upload PUT, webhook) instead of a key."""
    return request.match_info.route.name in ("upload-content", "git-hook")


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Set the request id, return a response in every case, log one line and count."""
    client_id = request.headers.get("X-Request-Id", "")
    request[REQUEST_ID] = (
        client_id if _CLIENT_REQUEST_ID.fullmatch(client_id) else f"req_{secrets.token_hex(8)}"
    )
    started = time.monotonic()
    status = 500
    try:
        response = await _respond(request, handler)
        status = response.status
    except BaseException:
        status = _DISCONNECTED_STATUS  # The client disconnected, or the service stops.
        raise
    else:
        return response
    finally:
        _record(request, status, time.monotonic() - started)


async def _respond(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Exception as error:
        if request.get(RESPONSE_STARTED):
            raise  # The response has started; aborting it is the only signal to the client.
        if _is_of_lost_body(request, error):
            error = errors.HttpApiError(_DISCONNECTED_STATUS, "the client disconnected")
        return responses.error_response(from_exception(error, request[REQUEST_ID]))


def _is_of_lost_body(request: web.Request, error: Exception) -> bool:
    """Return whether the client disconnected before the end of its body, which a route or the store read."""
    lost = request.content.exception()
    return isinstance(lost, ConnectionError) and (error is lost or error.__cause__ is lost)


def from_exception(error: Exception, request_id: str) -> errors.HttpApiError:
    """Convert an exception of a route; log internal errors here, and only here."""
    match error:
        case errors.HttpApiError():
            return error
        case web.HTTPException():
            return errors.from_http_exception(error)
        case store_errors.StoreUnavailable():
            _log.warning("store_unavailable", request_id=request_id, error=str(error))
            return errors.unavailable("the store cannot be read or written right now; try again shortly")
        case store_errors.UploadQuotaExceeded():
            return errors.uploads_full(error.used, error.limit, error.owner, error.setting)
        case store_errors.StoreRefused():
            details = {"field": error.field} if error.field else {}
            return errors.HttpApiError(error.status, error.message, details)
        case kube_errors.KubeError():
            api_error = errors.from_kube_error(error)
            if api_error is not None:
                return api_error
    _log.error("request_failed", request_id=request_id, exc_info=error)
    return errors.internal(request_id)


def _record(request: web.Request, status: int, seconds: float) -> None:
    route, metrics = route_template(request), request.app[SERVICES].metrics
    metrics.requests.labels(route, request.method, str(status)).inc()
    if not request.get(RESPONSE_STARTED) and not request.get(WAITED):
        metrics.seconds.labels(route, request.method).observe(seconds)
    caller = request.get(CALLER)
    # Probes and pods send requests all the time; at info level only their failures are logged.
    quiet = status < 400 and not request.path.startswith("/v1/")
    # The path without its query: the query of an upload URL carries its signature.
    (_log.debug if quiet else _log.info)(
        "request",
        method=request.method,
        path=request.path[:512],
        route=route,
        status=status,
        milliseconds=round(seconds * 1000, 2),
        request_id=request[REQUEST_ID],
        key=caller.key_id if caller else None,
        remote=remote_address(request),
    )


def remote_address(request: web.Request) -> str:
    """Return the address of the client, behind the proxies that the installation trusts."""
    trusted = request.app[SERVICES].config.trusted_proxies
    if not trusted:
        return request.remote or ""
    return client_address.client_address(
        request.remote, request.headers.getall("X-Forwarded-For", ()), trusted
    )


@web.middleware
async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Authenticate and rate-limit a /v1 request. Raises a 401 or a 429."""
    if request.path != "/v1" and not request.path.startswith("/v1/"):
        return await handler(request)
    services, caller, failure = request.app[SERVICES], None, None
    network = client_network(remote_address(request))
    if is_signed(request):
        return await _admit_signed(request, services, f"signed:{network}", handler)
    counter_key, per_minute = f"address:{network}", ANONYMOUS_REQUESTS_PER_MINUTE
    try:
        caller = await _authenticate(request, services, counter_key)
        if caller is not None:
            plan = caller.plan or await services.best_plan.of(caller, time.monotonic())
            counter_key = f"key:{caller.rate_limit_key}"
            per_minute = services.config.plans.of(plan).requests_per_minute
    except Exception as error:
        failure = error  # Count it nevertheless: this response also has the rate limit headers.
    request[ALLOWANCE] = await services.limiter.count(counter_key, per_minute)
    if failure is not None:
        raise failure
    if request[ALLOWANCE].exceeded:
        raise request[ALLOWANCE].error(time.time())
    if caller is None:
        raise errors.unauthorized()
    await _count_for_project(request, caller, services, per_minute)
    return await handler(request)


async def _admit_signed(
    request: web.Request, services: ApiServices, counter_key: str, handler: Handler
) -> web.StreamResponse:
    """Count wrong signatures by address. A right one never waits for wrong ones. Raises a 429."""
    request[ALLOWANCE] = await services.limiter.peek(counter_key, FAILED_PROOFS_PER_MINUTE)
    try:
        return await handler(request)
    except errors.HttpApiError as error:
        if error.status in _FAILED_PROOF_STATUSES:
            request[ALLOWANCE] = await services.limiter.count(counter_key, FAILED_PROOFS_PER_MINUTE)
            if request[ALLOWANCE].exceeded:
                raise request[ALLOWANCE].error(time.time()) from error
        raise


async def _count_for_project(
    request: web.Request, caller: Caller, services: ApiServices, per_minute: int
) -> None:
    """Count a request of a bound caller for its project, too: more keys are not more requests. Raises a 429.

    A caller of several projects counts for the first by name.
    """
    if not caller.projects:
        return
    project = min(caller.projects)
    plan = await services.best_plan.of_project(project, time.monotonic())
    # The installation may have given a key more than its project's plan.
    most = max(services.config.plans.of(plan).requests_of_project, per_minute)
    allowance = await services.limiter.count(f"project:{project}", most)
    if allowance.exceeded:
        services.metrics.limit_reached(tenant_limits.PROJECT_REQUESTS, project)
        request[ALLOWANCE] = allowance
        raise allowance.error(time.time(), f"the keys of project {project} sent ")


async def _authenticate(request: web.Request, services: ApiServices, address: str) -> Caller | None:
    async def guard() -> None:
        """Reject the address if invalid tokens have used up its rate limit."""
        allowance = await services.limiter.peek(address, ANONYMOUS_REQUESTS_PER_MINUTE)
        if allowance.exceeded:
            raise allowance.error(time.time())

    now, header = services.now(), request.headers.get("Authorization")
    caller = await authenticate.authenticate(services.keyring, services.tokens, header, now, guard)
    if caller is not None:
        request[CALLER] = caller
        if caller.kind == "key":
            services.store.keys.record_use(caller.key_id, now)
    return caller


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of every response, streams included; called just before a response starts."""
    request[RESPONSE_STARTED] = True
    response.headers["Server"] = "crewyard"
    response.headers["X-Request-Id"] = request.get(REQUEST_ID, "")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    allowance = request.get(ALLOWANCE)
    if allowance is not None:
        response.headers.update(allowance.headers())
