"""Authentication, request bodies and errors shared by all handlers of the internal API.

Called by the modules of `api.internal`. Errors do not use the envelope of /v1 but `{"error": text}`.
A transient error is 503, after which every pod retries.
"""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiohttp import hdrs, web

from api.config import ApiConfig
from api.internal.event_pace import EventPace
from api.internal.warm.pods import WarmPods
from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.tenant_limits import OnLimit
from crds import pod_tokens
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

MAX_BODY_BYTES = 1024 * 1024 + 64 * 1024
"""1 MiB for the events of a call, the rest for the JSON around them."""
BODY_TIMEOUT_SECONDS = 60.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class InternalContext:
    """Dependencies of the handlers."""

    config: ApiConfig
    store: Store
    kube: KubeClient
    on_claim: Callable[[str], None] = lambda state: None
    """Called with the state of each answered claim."""
    on_limit: OnLimit = lambda limit, project: None
    """Called when a project has reached a limit."""
    on_question: Callable[[str], None] = lambda state: None
    """Called when a question was asked, or closed unanswered."""
    warm_pods: Mapping[str, WarmPods] = field(init=False)
    """By namespace."""
    arriving_files: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Names and sizes of the files that runs are sending."""
    event_pace: EventPace = field(init=False)

    def __post_init__(self) -> None:
        pods = {name: WarmPods(self.kube.at(name)) for name in self.config.served_namespaces}
        object.__setattr__(self, "warm_pods", pods)
        object.__setattr__(self, "event_pace", EventPace(self.config.limits.events_per_second))

    def kube_of(self, token: pod_tokens.PodToken) -> KubeClient:
        """Return the client of the namespace of a verified token's object."""
        return self.kube.at(token.namespace)


class PodApiError(Exception):
    """An error response with its HTTP status and message."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **more}


def handle_errors(handler: Handler) -> Handler:
    """Wrap a handler to turn its exceptions into error responses."""

    async def call(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except PodApiError as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        except (StoreUnavailable, errors.KubeError) as error:
            log.warning("pod call failed", path=request.path, error=str(error))
            body = {"error": "the service is temporarily unavailable; try again"}
            return web.json_response(body, status=503, headers={hdrs.RETRY_AFTER: "1"})

    return call


def authenticate(context: InternalContext, request: web.Request, kind: str) -> pod_tokens.PodToken:
    """Verify and return the caller's token of this kind and namespace. Raises PodApiError 401."""
    scheme, _, credential = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise pod_tokens.TokenInvalid("no bearer token")
        token = pod_tokens.verify(context.config.token_keys, credential.strip(), time.time())
    except (pod_tokens.TokenInvalid, ValueError) as error:
        raise PodApiError(401, "the token is not valid for this call") from error
    if token.kind != kind or token.namespace not in context.config.served_namespaces:
        raise PodApiError(401, "the token is not valid for this call")
    return token


def authenticate_object(
    context: InternalContext, request: web.Request, kind: str, name: str
) -> pod_tokens.PodToken:
    """Verify and return the caller's token for this object. Raises PodApiError 401."""
    token = authenticate(context, request, kind)
    if token.name != name:
        raise PodApiError(401, "the token is not valid for this call")
    return token


async def read_json(request: web.Request) -> dict[str, Any]:
    """Read the request's JSON object. Raises PodApiError 400, 408, 413."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise PodApiError(
                        413, f"the body is larger than {MAX_BODY_BYTES} bytes; split it into several calls"
                    )
    except TimeoutError as error:
        raise PodApiError(
            408, f"the body took longer than {BODY_TIMEOUT_SECONDS:.0f} s; send it again"
        ) from error
    try:
        # Written again, NaN, Infinity and 1e999 are not valid JSON: clients could not parse them.
        body = json.loads(bytes(data), parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise PodApiError(400, f"the body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise PodApiError(400, "the body is not a JSON object")
    return body


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def text_field(body: dict[str, Any], field: str, max_length: int = 256) -> str:
    """Return a text field of a body. Raises PodApiError 400."""
    value = body.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= max_length or not value.isascii():
        raise PodApiError(400, f"{field} must be a string of 1 to {max_length} ASCII characters")
    return value


def int_field(body: dict[str, Any], field: str) -> int:
    """Return an integer field of a body, at least 0. Raises PodApiError 400."""
    value = body.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise PodApiError(400, f"{field} must be an integer of at least 0")
    return value
