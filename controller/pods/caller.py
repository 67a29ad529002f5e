"""Authentication of pods that call the controller. Called by the routes for build pods."""

import time
from collections.abc import Callable, Container

from aiohttp import web

from crds import pod_tokens


def authenticate(
    request: web.Request,
    kind: pod_tokens.TokenKind,
    parameter: str,
    token_keys: tuple[str, ...],
    namespaces: Container[str],
    is_active: Callable[[], bool],
) -> pod_tokens.PodToken | web.Response:
    """Return the token of a call, or the response that refuses it.

    The token names the object in the path's `parameter`. A standby responds 503: the pod asks the Service
    again, which may choose the leader.
    """
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        token = pod_tokens.verify(token_keys, bearer, time.time())
    except pod_tokens.TokenInvalid:
        return web.json_response({"error": "the token is invalid or has expired"}, status=401)
    if (token.kind, token.name) != (kind, request.match_info[parameter]) or token.namespace not in namespaces:
        return web.json_response({"error": f"the token is not for this {parameter}"}, status=401)
    if not is_active():
        return web.json_response({"error": "this controller is a standby"}, status=503)
    return token
