"""API keys: made, listed, revoked. For admin; one that is bound to projects deals with keys of these only."""

import re

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import nothing, one, page
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.store.index.api_keys import KeyRow
from api.v1 import schemas
from api.v1.keys import view as translate
from crds import api_keys

MAX_KEYS = 1000
"""Keys of an installation that are not revoked."""
_ID = re.compile(r"[0-9A-Za-z]{10}", re.ASCII)


async def _visible(call: Call) -> list[KeyRow]:
    held = call.caller.grants.where("admin")
    return [row for row in await call.services.store.keys.all() if row.within(held)]


async def _one(call: Call) -> KeyRow:
    """The key in the path. Raises 404 alike for one that is not there, revoked, or of other projects."""
    identifier = call.path("id")
    found = [row for row in await _visible(call) if row.id == identifier] if _ID.fullmatch(identifier) else []
    if not found:
        raise errors.not_found(f"there is no key {identifier[:100]!r}; GET /v1/api-keys lists them")
    return found[0]


async def create(call: Call) -> web.StreamResponse:
    """201 with the key itself, which is shown this once: only a hash of it is stored."""
    services, body, now = call.services, call.body, call.services.now()
    _check_projects(call)
    if body.get("plan") is not None and body["plan"] not in services.config.plans.by_name:
        known = ", ".join(sorted(services.config.plans.by_name))
        raise errors.invalid(f"plan must be one of {known}", "plan")
    drawn = api_keys.draw()
    try:
        row = translate.row(drawn, body, now)
    except (ValueError, OverflowError) as error:
        raise errors.invalid(
            "expires_at is not a moment, such as 2027-01-01T00:00:00Z", "expires_at"
        ) from error
    if row.expires_at is not None and row.expires_at <= now:
        raise errors.invalid("expires_at must be in the future", "expires_at")
    if len(await services.store.keys.all()) >= MAX_KEYS:
        raise errors.conflict(f"there are {MAX_KEYS} keys already; revoke some that are no longer used")
    await services.store.keys.put(row)
    shown = {**translate.item(row), "key": drawn.text}
    return responses.one(shown, 201, f"/v1/api-keys/{row.id}")


def _check_projects(call: Call) -> None:
    """Raises the 403 for a key that would hold more projects than its maker's."""
    held, wanted = call.caller.grants.where("admin"), call.body.get("projects")
    if held is None:
        return
    if wanted is None:
        raise errors.forbidden(
            "this key is bound to projects and makes keys for these only; name some in projects",
            field="projects",
        )
    for project in wanted:
        call.caller.require_project(project, "projects", "admin")


async def many(call: Call) -> web.StreamResponse:
    """The keys that are not revoked, expired ones included; without the installation's first ones."""
    found, asked = await _visible(call), call.page
    shown = [translate.item(row) for row in found[asked.offset : asked.offset + asked.size]]
    return responses.page(shown, len(found), asked)


async def get(call: Call) -> web.StreamResponse:
    """One key, but never the key itself."""
    return responses.one(translate.item(await _one(call)))


async def revoke(call: Call) -> web.StreamResponse:
    """204: the key holds no longer, from now on, and its open streams have ended."""
    row = await _one(call)
    await call.services.store.keys.revoke(row.id, call.services.now())
    call.services.streams.revoke(row.id)
    return web.Response(status=204)


_PATH = "/v1/api-keys"
ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        many,
        "admin",
        query=pagination.PARAMETERS,
        summary="List API keys",
        answers=(page(shapes.KEY, examples.KEY),),
    ),
    Endpoint(
        "POST",
        _PATH,
        create,
        "admin",
        body=schemas.KEY_CREATE,
        summary="Create an API key",
        answers=(one(shapes.KEY_CREATED, examples.KEY_CREATED, 201),),
        refusals=(409,),
        example=examples.KEY_CREATE,
    ),
    Endpoint(
        "GET",
        _PATH + "/{id}",
        get,
        "admin",
        summary="Get an API key",
        answers=(one(shapes.KEY, examples.KEY),),
    ),
    Endpoint(
        "DELETE",
        _PATH + "/{id}",
        revoke,
        "admin",
        summary="Revoke an API key",
        answers=(nothing("It holds no longer, and its open streams have ended."),),
    ),
)
