"""Environment variables of a project: kept in its Secret, written and never shown."""

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from api import answers, errors, pagination, schemas
from api.endpoint import Call, Endpoint
from api.openapi import examples, shapes
from api.openapi.operation import nothing, one, page
from api.routes import seen
from api.store.index.projects import ProjectRow
from api.translate import env
from crds import errors as kube_errors
from crds import names
from crds.kinds import SECRET

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
    if env.size(variables) > env.MAX_BYTES:
        raise errors.too_large(env.MAX_BYTES, "the variables together")


async def many(call: Call) -> web.StreamResponse:
    """The variables' names."""
    project = await seen.project(call)
    found = env.listed(await call.services.kube.get(SECRET, names.env_secret(project.name)))
    asked = call.page
    return answers.page(found[asked.offset : asked.offset + asked.size], len(found), asked)


async def replace(call: Call) -> web.StreamResponse:
    """Sets exactly the variables given; answers their names."""
    project = await seen.project(call)
    variables: dict[str, str] = call.body["variables"]
    _checked_size(variables)
    now = call.services.now()
    secret = await _write(
        call,
        project,
        lambda: env.new(project.name, project.uid, variables, now),
        lambda found: env.replaced(found, project.name, variables, now),
    )
    found = env.listed(secret)
    return answers.page(found, len(found), pagination.Page(1, max(len(found), 1)))


async def put(call: Call) -> web.StreamResponse:
    """Sets one variable."""
    project, name = await seen.project(call), _variable(call)
    value: str = call.body["value"]
    _checked_size({name: value})
    now = call.services.now()

    def patch(found: Secret) -> Secret:
        others = found.get("data") or {}
        if len(others.keys() | {name}) > schemas.MAX_VARIABLES:
            raise errors.conflict(
                f"a project has at most {schemas.MAX_VARIABLES} variables; remove some first"
            )
        return env.changed(found, project.name, name, value, now)

    secret = await _write(
        call, project, lambda: env.new(project.name, project.uid, {name: value}, now), patch
    )
    return answers.one(next(item for item in env.listed(secret) if item["name"] == name))


async def delete(call: Call) -> web.StreamResponse:
    """204: the variable is not set, whether it was or not."""
    project, name = await seen.project(call), _variable(call)
    found = await call.services.kube.get(SECRET, names.env_secret(project.name))
    if found is not None and name in (found.get("data") or {}):
        now = call.services.now()
        await _write(
            call,
            project,
            lambda: env.new(project.name, project.uid, {}, now),
            lambda secret: env.changed(secret, project.name, name, None, now),
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
