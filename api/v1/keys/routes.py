"""Routes of API keys: create, list, get, revoke. Admins only; a key bound to projects manages their keys."""

import re
import time
from dataclasses import replace
from datetime import datetime, timedelta

from aiohttp import web

from api import errors, tenant_limits
from api.http import pagination, responses
from api.http.operation import empty_response, item_response, page_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.api_keys import KeyRow
from api.store.index.audit.change import describe
from api.v1 import plans
from api.v1.keys import schema, view
from crds import api_keys

MAX_KEYS = 10_000
"""Limit of keys in an installation that are not revoked."""
_ID = re.compile(r"[0-9A-Za-z]{10}", re.ASCII)


async def _visible_keys(call: EndpointCall) -> list[KeyRow]:
    admin_projects = call.caller.grants.projects_with("admin")
    return [row for row in await call.services.store.keys.all() if row.is_within(admin_projects)]


async def _visible_key(call: EndpointCall) -> KeyRow:
    """Return the key in the path. Raises the same 404 if it is missing, revoked, or of other projects."""
    identifier = call.path("id")
    matches = (
        [row for row in await _visible_keys(call) if row.id == identifier]
        if _ID.fullmatch(identifier)
        else []
    )
    if not matches:
        raise errors.not_found(f"key {identifier[:100]!r} not found; GET /v1/api-keys lists keys")
    return matches[0]


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create an API key. The key is returned only once; the service stores its hash."""
    services, body, now = call.services, call.body, call.services.now()
    _check_projects(call)
    plans.check_known(call)
    await _check_plan(call)
    api_key = api_keys.generate()
    try:
        row = view.row(api_key, body, call.caller.principal, now)
    except (ValueError, OverflowError) as error:
        raise errors.invalid(
            "expires_at is not a valid time, for example 2027-01-01T00:00:00Z", "expires_at"
        ) from error
    if row.expires_at is not None and row.expires_at <= now:
        raise errors.invalid("expires_at must be in the future", "expires_at")
    row = _with_expiry(row, now, services.config.limits.key_seconds)
    await _check_counts(call)
    describe(_only_project(row), row.id)
    await services.store.keys.put(row)
    response_body = {**view.item(row), "key": api_key.text}
    return responses.item(response_body, 201, f"/v1/api-keys/{row.id}")


def _with_expiry(row: KeyRow, now: datetime, seconds: int) -> KeyRow:
    """Return the row, which expires after so many seconds at the latest; 0: never. Raise 400 beyond."""
    if not seconds:
        return row
    latest = now + timedelta(seconds=seconds)
    if row.expires_at is not None and row.expires_at > latest:
        raise errors.invalid(
            f"expires_at must be {latest:%Y-%m-%dT%H:%M:%SZ} at the latest: the installation limits the life "
            "of keys (key_seconds)",
            "expires_at",
        )
    return row if row.expires_at is not None else replace(row, expires_at=latest)


def _only_project(row: KeyRow) -> str | None:
    """Return the project of a key of one project; other keys concern the installation."""
    return next(iter(row.projects)) if row.projects is not None and len(row.projects) == 1 else None


def _check_projects(call: EndpointCall) -> None:
    """Raise 403 for a key that would have more projects than the caller's."""
    admin_projects, requested = call.caller.grants.projects_with("admin"), call.body.get("projects")
    if admin_projects is None:
        return
    if requested is None:
        raise errors.forbidden(
            "this key is bound to projects and can only create keys for them; list some of them in projects",
            field="projects",
        )
    for project in requested:
        call.caller.require_project(project, "projects", "admin")


async def _check_plan(call: EndpointCall) -> None:
    """Raise 403 for a plan above that of a caller who is not an admin of all projects."""
    plan, known = call.body.get("plan"), call.services.config.plans
    if plan is None or call.caller.grants.administers_all:
        return
    own = call.caller.plan or await call.services.best_plan.of(call.caller, time.monotonic())
    if not known.of(plan).is_within(known.of(own)):
        raise errors.forbidden(
            f"a key that is bound to projects cannot create one with a plan above its own, {own}; "
            "leave plan out, or ask the operator",
            field="plan",
            required_scope="admin",
        )


async def _check_counts(call: EndpointCall) -> None:
    """Raise 409 if the installation or one of the key's projects has too many keys."""
    services = call.services
    keys = await services.store.keys.all()
    if len(keys) >= MAX_KEYS:
        raise errors.conflict(f"the installation already has {MAX_KEYS} keys; revoke unused ones")
    for project in call.body.get("projects") or ():
        count = sum(key.is_bound_to(project) for key in keys)
        limit = (await services.limits_of(project)).project_keys
        if count >= limit:
            services.metrics.limit_reached(tenant_limits.PROJECT_KEYS, project)
            raise errors.conflict(
                f"the project {project} already has {count} keys, and the limit project_keys is {limit}; "
                "revoke unused ones",
                field="projects",
            )


async def list_keys(call: EndpointCall) -> web.StreamResponse:
    """List the keys that are not revoked, including expired ones, excluding keys set by the installation."""
    keys, page_request = await _visible_keys(call), call.page
    items = [view.item(row) for row in keys[page_request.offset : page_request.offset + page_request.size]]
    return responses.page(items, len(keys), page_request)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Get the metadata of a key."""
    return responses.item(view.item(await _visible_key(call)))


async def revoke(call: EndpointCall) -> web.StreamResponse:
    """Revoke a key immediately and end its open streams."""
    row = await _visible_key(call)
    describe(_only_project(row), row.id)
    await call.services.store.keys.revoke(row.id, call.services.now())
    call.services.streams.revoke(row.id)
    return web.Response(status=204)


_PATH = "/v1/api-keys"
ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        list_keys,
        "admin",
        query=pagination.PAGE_PARAMETERS,
        summary="List API keys",
        responses=(page_response(schema.ITEM, schema.EXAMPLE),),
    ),
    Endpoint(
        "POST",
        _PATH,
        create,
        "admin",
        body=schema.CREATE,
        summary="Create an API key",
        responses=(item_response(schema.CREATED, schema.CREATED_EXAMPLE, 201),),
        error_statuses=(409,),
        example=schema.CREATE_EXAMPLE,
    ),
    Endpoint(
        "GET",
        _PATH + "/{id}",
        get,
        "admin",
        summary="Get an API key",
        responses=(item_response(schema.ITEM, schema.EXAMPLE),),
    ),
    Endpoint(
        "DELETE",
        _PATH + "/{id}",
        revoke,
        "admin",
        summary="Revoke an API key",
        responses=(empty_response("The key is revoked, and its open streams have ended."),),
    ),
)
