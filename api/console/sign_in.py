"""Routes of the console's sign-in by OpenID Connect, without authentication. Called by `api.app`.

The page starts it, with a state and a PKCE verifier that it keeps in its tab, and sends the code it gets back
here. The session is the provider's ID token, which the page sends as bearer: without a cookie, another site
cannot make a browser send it.
"""

import time

from aiohttp import web

from api import errors
from api.auth.sign_in.code_exchange import CodeExchange
from api.auth.unverified import parse_unverified
from api.http import request_body, validation
from api.ratelimit.limiter import client_network
from api.routing.middleware import remote_address
from api.services import SERVICES

PATH = "/console/sign-in"
MAX_BODY_BYTES = 16 * 1024
SIGN_INS_PER_MINUTE = 30
"""Of one client address; each asks the provider."""
_FIELDS = ("code", "code_verifier", "nonce")
_BODY = validation.validator(
    {
        "type": "object",
        "required": list(_FIELDS),
        "properties": {name: {"type": "string", "minLength": 1} for name in _FIELDS},
    }
)
_NO_STORE = {"Cache-Control": "no-store"}


def add_routes(app: web.Application) -> None:
    """Add the routes; without the setting, `data` is null and codes are refused."""
    config = app[SERVICES].config
    exchange = (
        None if config.sign_in is None else CodeExchange(config.sign_in, f"{config.public_url}/console/")
    )

    async def describe(_: web.Request) -> web.StreamResponse:
        return web.json_response({"data": exchange and await _describe(exchange)}, headers=_NO_STORE)

    async def exchange_code(request: web.Request) -> web.StreamResponse:
        if exchange is None:
            raise errors.not_found("this installation has no sign-in besides API keys")
        return await _exchange_code(request, exchange)

    app.router.add_get(PATH, describe)
    app.router.add_post(PATH, exchange_code)


async def _describe(exchange: CodeExchange) -> dict[str, str]:
    return {
        "authorization_endpoint": await exchange.authorization_endpoint(),
        "client_id": exchange.settings.client_id,
        "scope": exchange.settings.scopes,
        "redirect_uri": exchange.redirect_uri,
    }


async def _exchange_code(request: web.Request, exchange: CodeExchange) -> web.StreamResponse:
    services = request.app[SERVICES]
    allowance = await services.limiter.count(
        f"sign-in:{client_network(remote_address(request))}", SIGN_INS_PER_MINUTE
    )
    if allowance.exceeded:
        raise allowance.error(time.time())
    code, verifier, nonce = await _fields(request)
    token, now = await exchange.id_token(code, verifier), services.now()
    unverified = parse_unverified(token)
    users = services.tokens.users
    claims = None if unverified is None or users is None else await users.claims(token, unverified, now)
    if claims is None or claims.get("nonce") != nonce:
        raise errors.invalid(
            "the identity provider's token is not valid for this sign-in; start it again", "code"
        )
    assert unverified is not None and users is not None
    if await users.caller(token, unverified, now) is None:
        raise errors.forbidden(
            "you are in none of the groups that may sign in; ask the operator of the service"
        )
    return web.json_response({"data": {"token": token}}, headers=_NO_STORE)


async def _fields(request: web.Request) -> list[str]:
    """Return the fields of the body. Raises 400; 415 for another type, since no form can send JSON."""
    if request.content_length is None or request.content_length > MAX_BODY_BYTES:
        raise errors.HttpApiError(413, f"the body needs a Content-Length of at most {MAX_BODY_BYTES}")
    body = await request_body.read(request, _BODY)
    return [body[name] for name in _FIELDS]
