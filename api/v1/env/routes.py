"""Environment variables of a project: kept in its Secret, written and never shown."""

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import nothing, one, page
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.store.index.projects import ProjectRow
from api.v1 import lookup, schemas
from api.v1.env import view
from crds import names
from crds.kinds import SECRET
from kube import errors as kube_errors

_ATTEMPTS = 4
_NAME = re.compile(schemas.VARIABLE_NAME["pattern"].rstrip("$") + r"\Z", re.ASCII)
Secret = dict[str, Any]


async def _write(
    call: Call, project: ProjectRow, make: Callable[[], Secret], patch: Callable[[Secret], Secret]
) -> Secret:
    """Makes the Secret, or changes it; again where somebody else did so in between."""
    kube, name = call.services.kube, names.env_secret(project.name)
    for attempt in range(_ATTEMPTS):
        found = await kube.get(SECRET, name)
        try:
            return await (
                kube.create(SECRET, make()) if found is None else kube.patch(SECRET, name, patch(found))
            )
        except (kube_errors.Conflict, kube_errors.AlreadyExists, kube_errors.NotFound):
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _checked_size(variables: dict[str, str]) -> None:
    if view.size(variables) > view.MAX_BYTES:
        raise errors.too_large(view.MAX_BYTES, "the variables together")


async def many(call: Call) -> web.StreamResponse:
    """The variables' names."""
    project = await lookup.project(call)
    found = view.listed(await call.services.kube.get(SECRET, names.env_secret(project.name)))
    asked = call.page
    return responses.page(found[asked.offset : asked.offset + asked.size], len(found), asked)


async def replace(call: Call) -> web.StreamResponse:
    """Sets exactly the variables given; answers their names."""
    project = await lookup.project(call)
    variables: dict[str, str] = call.body["variables"]
    _checked_size(variables)
    now = call.services.now()
    secret = await _write(
        call,
        project,
        lambda: view.new(project.name, project.uid, variables, now),
        lambda found: view.replaced(found, project.name, variables, now),
    )
    found = view.listed(secret)
    return responses.page(found, len(found), pagination.Page(1, max(len(found), 1)))


async def put(call: Call) -> web.StreamResponse:
    """Sets one variable."""
    project, name = await lookup.project(call), _variable(call)
    value: str = call.body["value"]
    _checked_size({name: value})
    now = call.services.now()

    def patch(found: Secret) -> Secret:
        others = found.get("data") or {}
        if len(others.keys() | {name}) > schemas.MAX_VARIABLES:
            raise errors.conflict(
                f"a project has at most {schemas.MAX_VARIABLES} variables; remove some first"
            )
        return view.changed(found, project.name, name, value, now)

    secret = await _write(
        call, project, lambda: view.new(project.name, project.uid, {name: value}, now), patch
    )
    return responses.one(next(item for item in view.listed(secret) if item["name"] == name))


async def delete(call: Call) -> web.StreamResponse:
    """204: the variable is not set, whether it was or not."""
    project, name = await lookup.project(call), _variable(call)
    found = await call.services.kube.get(SECRET, names.env_secret(project.name))
    if found is not None and name in (found.get("data") or {}):
        now = call.services.now()
        await _write(
            call,
            project,
            lambda: view.new(project.name, project.uid, {}, now),
            lambda secret: view.changed(secret, project.name, name, None, now),
        )
    return web.Response(status=204)


def _variable(call: Call) -> str:
    name = call.path("variable")
    if not _NAME.match(name) or len(name) > schemas.VARIABLE_NAME["maxLength"]:
        raise errors.invalid(f"the name cannot be used: {schemas.VARIABLE_NAME['description']}", "variable")
    return name


_PATH = "/v1/projects/{name}/env"
ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        many,
        "read",
        query=pagination.PARAMETERS,
        summary="List variables",
        answers=(page(shapes.VARIABLE, examples.VARIABLE),),
    ),
    Endpoint(
        "PUT",
        _PATH,
        replace,
        "deploy",
        body=schemas.ENV_REPLACE,
        summary="Replace all variables",
        answers=(page(shapes.VARIABLE, examples.VARIABLE, linked=False),),
        refusals=(409,),
        example=examples.ENV_REPLACE,
    ),
    Endpoint(
        "PUT",
        _PATH + "/{variable}",
        put,
        "deploy",
        body=schemas.ENV_SET,
        summary="Set a variable",
        answers=(one(shapes.VARIABLE, examples.VARIABLE),),
        refusals=(409,),
        example=examples.ENV_SET,
    ),
    Endpoint(
        "DELETE",
        _PATH + "/{variable}",
        delete,
        "deploy",
        summary="Remove a variable",
        answers=(nothing("It is not set, whether it was or not."),),
        refusals=(409,),
    ),
)
