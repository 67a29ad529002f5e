"""Projects: containers of deployments."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import nothing, one, page
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.store.index.projects import ProjectRow
from api.v1 import lookup, schemas
from api.v1.projects import view
from crds.kinds import PROJECT
from crds.objects import Project
from kube import errors as kube_errors


def _only_admin(call: Call, project: str, spec: Mapping[str, Any] | None = None) -> None:
    """Raises the 403 for fields that give permissions, from anybody but admin; `spec` is what is changed."""
    if not call.caller.may("admin", project):
        for field in (*view.admin_fields(call.body), *view.diverted(call.body, spec or {})):
            raise errors.forbidden(
                f"{field} needs the scope admin; leave it out, or use a key that has it",
                field=field,
                required_scope="admin",
            )


async def _observed(call: Call, raw: dict[str, Any]) -> ProjectRow:
    """The row of what the apiserver answered, so that the next reader sees it."""
    store, found = call.services.store, Project(raw)
    await store.projects.observe(found)
    row = await store.projects.get(found.name)
    if row is None:
        raise errors.not_found(f"the project {found.name} was deleted meanwhile")
    return row


async def create(call: Call) -> web.StreamResponse:
    """201 with the project."""
    name = call.body["name"]
    call.caller.require_project(name, "name", call.scope)
    _only_admin(call, name)
    body = {"metadata": {"name": name}, "spec": view.spec(call.body)}
    try:
        row = await _observed(call, await call.services.kube.create(PROJECT, body))
    except kube_errors.AlreadyExists as error:
        raise errors.conflict(
            f"a project named {name} exists already; choose another name", field="name"
        ) from error
    return responses.one(view.item(row), 201, f"/v1/projects/{name}")


async def many(call: Call) -> web.StreamResponse:
    """The projects that the key is for."""
    found = await call.services.store.projects.page(call.page.offset, call.page.size, call.caller.projects)
    return responses.page([view.item(row) for row in found.items], found.total, call.page)


async def get(call: Call) -> web.StreamResponse:
    """One project."""
    return responses.one(view.item(await lookup.project(call)))


async def change(call: Call) -> web.StreamResponse:
    """Merges the body into the project: what is left out stays, null removes."""
    row = await lookup.project(call)
    _only_admin(call, row.name, row.spec)
    patch = {"metadata": {"uid": row.uid}, "spec": view.spec(call.body)}
    return responses.one(
        view.item(await _observed(call, await call.services.kube.patch(PROJECT, row.name, patch)))
    )


async def delete(call: Call) -> web.StreamResponse:
    """204: the project and all that belongs to it is gone; its runs are stopped."""
    row = await lookup.project(call)
    await call.services.kube.delete(PROJECT, row.name, uid=row.uid)
    await call.services.store.projects.remove(row.name, row.uid, call.services.now())
    return web.Response(status=204)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/projects",
        many,
        "read",
        remembers=True,
        query=pagination.PARAMETERS,
        summary="List projects",
        answers=(page(shapes.PROJECT, examples.PROJECT),),
    ),
    Endpoint(
        "POST",
        "/v1/projects",
        create,
        "deploy",
        body=schemas.PROJECT_CREATE,
        summary="Create a project",
        answers=(one(shapes.PROJECT, examples.PROJECT, 201),),
        refusals=(404, 409),
        example=examples.PROJECT_CREATE,
    ),
    Endpoint(
        "GET",
        "/v1/projects/{name}",
        get,
        "read",
        remembers=True,
        summary="Get a project",
        answers=(one(shapes.PROJECT, examples.PROJECT),),
    ),
    Endpoint(
        "PATCH",
        "/v1/projects/{name}",
        change,
        "deploy",
        body=schemas.PROJECT_PATCH,
        summary="Change a project",
        answers=(one(shapes.PROJECT, examples.PROJECT),),
        refusals=(409,),
        example=examples.PROJECT_PATCH,
    ),
    Endpoint(
        "DELETE",
        "/v1/projects/{name}",
        delete,
        "admin",
        summary="Delete a project",
        answers=(nothing("It is gone, with all that belongs to it."),),
        refusals=(409,),
    ),
)
