"""Routes of schedules: entries of `Project.spec.schedules`, changed one at a time."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import empty_response, item_response, page_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.v1 import lookup
from api.v1.projects.spec_patch import patch_spec
from api.v1.schedules import check, schema, view
from crds.objects import Project

_NAME = re.compile(schema.NAME["pattern"].rstrip("$") + r"\Z", re.ASCII)
Schedules = Sequence[Mapping[str, Any]]


async def list_schedules(call: EndpointCall) -> web.StreamResponse:
    """List the schedules with their last and next time, in the order of the project."""
    row, page = await lookup.project(call), call.page
    found = view.items(row.spec, row.status)
    return responses.page(found[page.offset : page.offset + page.size], len(found), page)


async def set_schedule(call: EndpointCall) -> web.StreamResponse:
    """Set a schedule: create it, or replace it whole."""
    name = _schedule_name(call)
    changed = view.to_spec(name, call.body)
    check.check_schedule(call, call.path("name"), changed)
    await check.check_against_active(call, await lookup.project(call), changed)

    def add(schedules: Schedules) -> Schedules:
        result = view.with_schedule(schedules, changed)
        if len(result) > schema.MAX_SCHEDULES:
            raise errors.conflict(
                f"a project can have at most {schema.MAX_SCHEDULES} schedules; remove one first"
            )
        return result

    project = await _write(call, add)
    found = view.items(project.spec, project.status)
    return responses.item(next(one for one in found if one["name"] == name))


async def delete_schedule(call: EndpointCall) -> web.StreamResponse:
    """Remove a schedule; its runs stay. 204 also if there is none."""
    name = _schedule_name(call)
    await _write(call, lambda schedules: view.without(schedules, name))
    return web.Response(status=204)


async def _write(call: EndpointCall, change: Callable[[Schedules], Schedules]) -> Project:
    """Change the list in exactly the version that was read; return the Project, recorded in the index."""

    def changed(project: Project) -> Mapping[str, Any] | None:
        before = project.spec.get("schedules") or []
        after = list(change(before))
        return None if after == before else {"schedules": after or None}

    return await patch_spec(call, await lookup.project(call), changed)


def _schedule_name(call: EndpointCall) -> str:
    name = call.path("schedule")
    if not _NAME.match(name) or len(name) > schema.NAME["maxLength"]:
        raise errors.invalid(
            f"a schedule's name has at most {schema.NAME['maxLength']} lower-case letters, digits and "
            "hyphens, for example weekdays",
            "schedule",
        )
    return name


_PATH = "/v1/projects/{name}/schedules"
ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        list_schedules,
        "read",
        cacheable=True,
        query=pagination.PAGE_PARAMETERS,
        summary="List schedules",
        responses=(page_response(schema.ITEM, schema.EXAMPLE, order="in the order of the project's spec"),),
    ),
    Endpoint(
        "PUT",
        _PATH + "/{schedule}",
        set_schedule,
        "run",
        body=schema.SET,
        summary="Set a schedule",
        responses=(item_response(schema.ITEM, schema.EXAMPLE),),
        error_statuses=(409,),
        example=schema.SET_EXAMPLE,
    ),
    Endpoint(
        "DELETE",
        _PATH + "/{schedule}",
        delete_schedule,
        "run",
        summary="Remove a schedule",
        responses=(empty_response("There is no such schedule."),),
        error_statuses=(409,),
    ),
)
