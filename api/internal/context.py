"""Who calls, what they send, and how they are refused: shared by all calls of pods.

A pod knows nothing of /v1's envelope: an error is `{"error": text}`. Anything
that may pass is 503, which every pod answers with trying again.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import hdrs, web

from api.config import Config
from api.store.errors import StoreUnavailable
from api.store.store import Store
from crds import pod_tokens
from kube import errors
from kube.client import Kube

log = structlog.get_logger()

MAX_BODY = 1024 * 1024 + 64 * 1024
"""A call's events may have 1 MiB; the rest is their frame."""
BODY_SECONDS = 60.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Yard:
    """What every call needs."""

    config: Config
    store: Store
    kube: Kube
    claimed: Callable[[str], None] = lambda state: None
    """Told how each claim was answered."""


class Refusal(Exception):
    """An answer other than success, with its status and what is wrong."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **more}


def answered(handler: Handler) -> Handler:
    """Turns what a call raises into its answer."""

    async def call(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        except (StoreUnavailable, errors.KubeError) as error:
            log.warning("pod call failed", path=request.path, error=str(error))
            body = {"error": "the service cannot answer now; try again"}
            return web.json_response(body, status=503, headers={hdrs.RETRY_AFTER: "1"})

    return call


def bearer(yard: Yard, request: web.Request, kind: str) -> pod_tokens.Token:
    """The verified token of the caller, of this kind and namespace. Raises Refusal 401."""
    scheme, _, text = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise pod_tokens.TokenInvalid("no bearer token")
        found = pod_tokens.verify(yard.config.token_key, text.strip(), time.time())
    except (pod_tokens.TokenInvalid, ValueError) as error:
        raise Refusal(401, "the token is not valid for this call") from error
    if (found.kind, found.namespace) != (kind, yard.config.namespace):
        raise Refusal(401, "the token is not valid for this call")
    return found


def token(yard: Yard, request: web.Request, kind: str, name: str) -> pod_tokens.Token:
    """The verified token of the caller for this object. Raises Refusal 401."""
    found = bearer(yard, request, kind)
    if found.name != name:
        raise Refusal(401, "the token is not valid for this call")
    return found


async def body(request: web.Request) -> dict[str, Any]:
    """The call's JSON object. Raises Refusal 400, 408, 413."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > MAX_BODY:
                    raise Refusal(413, f"the body is larger than {MAX_BODY} bytes; send less at once")
    except TimeoutError as error:
        raise Refusal(408, f"the body took longer than {BODY_SECONDS:.0f} s; send it again") from error
    try:
        # NaN and the like are no JSON: a reader could not read them back.
        found = json.loads(bytes(data), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refusal(400, "the body is no JSON object")
    return found


def text(found: dict[str, Any], field: str, most: int = 256) -> str:
    """A text field of a body. Raises Refusal 400."""
    value = found.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isascii():
        raise Refusal(400, f"{field} must be a text of 1 to {most} ASCII characters")
    return value


def number(found: dict[str, Any], field: str) -> int:
    """A whole number of at least 0 in a body. Raises Refusal 400."""
    value = found.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise Refusal(400, f"{field} must be a whole number of at least 0")
    return value
