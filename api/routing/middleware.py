"""What happens to every request before and after its route.

Two middlewares, outermost first: `observe` gives the request its id, turns every
failure into an answer, counts and logs it; `admit` asks, for /v1, who is calling
and whether they call too often. Assembled by `api.app`.
"""

import re
import secrets
import time
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from api import errors
from api.auth import authenticate
from api.auth.principal import Caller
from api.http import responses
from api.ratelimit.limiter import Allowance, place
from api.services import SERVICES, Services
from api.store import errors as store_errors
from kube import errors as kube_errors

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REQUEST_ID = web.RequestKey("request_id", str)
CALLER = web.RequestKey("caller", Caller)
ALLOWANCE = web.RequestKey("allowance", Allowance)
STREAMED = web.RequestKey("streamed", bool)
"""Set once an answer has begun: it can no longer be replaced by an error."""
ANONYMOUS_PER_MINUTE = 60
"""Requests a minute of an address that shows no valid key."""
SIGNED_PER_MINUTE = 600
"""Uploads and webhooks a minute of one address, which many builders, or a git host's projects, share."""
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_log = structlog.get_logger("api")


def template(request: web.Request) -> str:
    """The route's path with its placeholders; `unmatched` for paths that are none."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unmatched"


def signed(request: web.Request) -> bool:
    """Whether the request carries its permission itself (an upload's PUT, a webhook): no key is asked for."""
    return request.match_info.route.name in ("upload-content", "git-hook")


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every request: an id, an answer whatever happens, one line in the log, the counters."""
    given = request.headers.get("X-Request-Id", "")
    request[REQUEST_ID] = given if _GIVEN_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"
    started = time.monotonic()
    status = 500
    try:
        response = await _answer(request, handler)
        status = response.status
    except BaseException:
        status = 499  # The reader left, or the service stops: nobody is there to be answered.
        raise
    else:
        return response
    finally:
        _record(request, status, time.monotonic() - started)


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Exception as error:
        if request.get(STREAMED):
            raise  # The answer has begun; it can only be cut off, which the reader notices.
        return responses.failure(of_exception(error, request[REQUEST_ID]))


def of_exception(error: Exception, request_id: str) -> errors.ApiError:
    """The answer for whatever a route raised; what is our own fault is logged here, and only here."""
    match error:
        case errors.ApiError():
            return error
        case web.HTTPException():
            return errors.of_http(error)
        case store_errors.StoreUnavailable():
            _log.warning("store_unavailable", request_id=request_id, error=str(error))
            return errors.unavailable("what is stored cannot be read or written right now; try again shortly")
        case store_errors.Missing():
            return errors.not_found(error.message)
        case store_errors.Taken():
            return errors.conflict(error.message, **({"field": error.field} if error.field else {}))
        case store_errors.TooLarge():
            return errors.ApiError(413, error.message)
        case store_errors.Full():
            return errors.full(error.held, error.most)
        case store_errors.Refused():
            return errors.invalid(error.message, error.field)
        case kube_errors.KubeError():
            known = errors.of_kube(error)
            if known is not None:
                return known
    _log.error("request_failed", request_id=request_id, exc_info=error)
    return errors.internal(request_id)


def _record(request: web.Request, status: int, seconds: float) -> None:
    route, metrics = template(request), request.app[SERVICES].metrics
    metrics.requests.labels(route, request.method, str(status)).inc()
    streamed = bool(request.get(STREAMED))
    if not streamed:
        metrics.seconds.labels(route, request.method).observe(seconds)
    caller = request.get(CALLER)
    # Probes and pods speak all the time; they are of interest when something is wrong with them.
    quiet = status < 400 and not request.path.startswith("/v1/")
    # The path without its query: an upload's address carries its signature there.
    (_log.debug if quiet else _log.info)(
        "request",
        method=request.method,
        path=request.path[:512],
        route=route,
        status=status,
        milliseconds=round(seconds * 1000, 2),
        request_id=request[REQUEST_ID],
        key=caller.key_id if caller else None,
        remote=request.remote,
    )


@web.middleware
async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every /v1 request: its key, and its place in the minute. Raises 401 and 429."""
    if request.path != "/v1" and not request.path.startswith("/v1/"):
        return await handler(request)
    services, caller, failure = request.app[SERVICES], None, None
    where = place(request.remote)
    who, per_minute = f"address:{where}", ANONYMOUS_PER_MINUTE
    if signed(request):
        who, per_minute = f"signed:{where}", SIGNED_PER_MINUTE
    else:
        try:
            caller = await _caller(request, services, who)
            if caller is not None:
                plan = caller.plan or await services.best_plan.of(caller, time.monotonic())
                who = f"key:{caller.counted_as}"
                per_minute = services.config.plans.of(plan).requests_per_minute
        except Exception as error:
            failure = error  # Counted all the same, so that this answer too says what is left.
    request[ALLOWANCE] = await services.limiter.count(who, per_minute)
    if failure is not None:
        raise failure
    if request[ALLOWANCE].exceeded:
        raise request[ALLOWANCE].refusal(time.time())
    if caller is None and not signed(request):
        raise errors.unauthorized()
    return await handler(request)


async def _caller(request: web.Request, services: Services, address: str) -> Caller | None:
    async def guard() -> None:
        """An address that has used its minute up with bad tokens gets no more of them checked."""
        allowance = await services.limiter.look(address, ANONYMOUS_PER_MINUTE)
        if allowance.exceeded:
            raise allowance.refusal(time.time())

    now, header = services.now(), request.headers.get("Authorization")
    caller = await authenticate.authenticate(services.keyring, services.tokens, header, now, guard)
    if caller is not None:
        request[CALLER] = caller
        if caller.kind == "key":
            services.store.keys.used(caller.key_id, now)
    return caller


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """The headers of every answer, streams included; called just before an answer begins."""
    request[STREAMED] = True
    response.headers["Server"] = "crewyard"
    response.headers["X-Request-Id"] = request.get(REQUEST_ID, "")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    allowance = request.get(ALLOWANCE)
    if allowance is not None:
        response.headers.update(allowance.headers())
