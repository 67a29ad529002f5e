"""Routes of environment variables: stored in the project's Secret, write-only."""

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import empty_response, item_response, page_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.projects import ProjectRow
from api.v1 import conflicts, lookup
from api.v1.env import schema, view
from crds import names
from crds.kinds import SECRET
from crds.secrets.use import variables_problem

_NAME = re.compile(schema.NAME["pattern"].rstrip("$") + r"\Z", re.ASCII)
Secret = dict[str, Any]


async def _read(call: EndpointCall, project: ProjectRow) -> Secret | None:
    """Return the Secret of the project's variables. 409 if it is not the project's."""
    services = call.services
    secret = await services.kube.at(project.object_namespace).get(SECRET, names.env_secret(project.name))
    problem = variables_problem(secret, project.as_object(), services.config.secret_use)
    if problem is not None:
        raise errors.conflict(problem)
    return secret


async def _write(
    call: EndpointCall, project: ProjectRow, make: Callable[[], Secret], patch: Callable[[Secret], Secret]
) -> Secret:
    """Create or patch the Secret; repeat it after a concurrent change."""
    kube, name = call.services.kube.at(project.object_namespace), names.env_secret(project.name)

    async def write() -> Secret:
        secret = await _read(call, project)
        if secret is None:
            return await kube.create(SECRET, make())
        change = patch(secret)
        if not secret["metadata"].get("ownerReferences"):
            # Made with kubectl: a later project of the same name would get its values.
            change["metadata"]["ownerReferences"] = view.owner_references(project.name, project.uid)
        return await kube.patch(SECRET, name, change)

    return await conflicts.repeated(write)


def _check_size(variables: dict[str, str], parent: str = "") -> None:
    """Raise a 400 for a variable that no program starts with, a 413 for too large ones together.

    `parent`: the field with the variables by name; none if the body has one value.
    """
    for name, value in variables.items():
        if len(f"{name}={value}".encode()) > schema.MAX_VARIABLE_BYTES:
            field = f"{parent}.{name}" if parent else "value"
            most = schema.MAX_VARIABLE_BYTES - len(name) - 1
            raise errors.invalid(
                f"{field} must have at most {most} bytes: with a longer {name}, Linux starts no run; "
                "shorten it, or pass it in a run's input",
                field,
                limit_bytes=most,
            )
    _check_total(view.size(variables))


def _check_total(size: int, before: int = 0) -> None:
    """Raise a 413 for too large variables together, unless they had `before` bytes or more already."""
    if size > max(view.MAX_BYTES, before):
        raise errors.too_large(view.MAX_BYTES, "the total of all names and values of the project's variables")


async def list_variables(call: EndpointCall) -> web.StreamResponse:
    """List the names of the variables."""
    project = await lookup.project(call)
    variables = view.items(await _read(call, project))
    page_request = call.page
    return responses.page(
        variables[page_request.offset : page_request.offset + page_request.size], len(variables), page_request
    )


async def replace_variables(call: EndpointCall) -> web.StreamResponse:
    """Replace all variables and return their names."""
    project = await lookup.project(call)
    variables: dict[str, str] = call.body["variables"]
    _check_size(variables, "variables")
    now = call.services.now()
    secret = await _write(
        call,
        project,
        lambda: view.new_secret(project.name, project.uid, variables, now),
        lambda items: view.replace_patch(items, project.name, variables, now),
    )
    items = view.items(secret)
    return responses.page(items, len(items), pagination.PageRequest(1, max(len(items), 1)))


async def set_variable(call: EndpointCall) -> web.StreamResponse:
    """Set a variable."""
    project, name = await lookup.project(call), _variable_name(call)
    value: str = call.body["value"]
    _check_size({name: value})
    now = call.services.now()

    def patch(secret: Secret) -> Secret:
        variables = secret.get("data") or {}
        if name not in variables and len(variables) >= schema.MAX_VARIABLES:
            raise errors.conflict(
                f"a project can have at most {schema.MAX_VARIABLES} variables; remove some first"
            )
        sizes = view.stored_sizes(secret)
        before = sum(sizes.values())
        _check_total(before - sizes.get(name, 0) + view.size({name: value}), before)
        return view.variable_patch(secret, project.name, name, value, now)

    secret = await _write(
        call, project, lambda: view.new_secret(project.name, project.uid, {name: value}, now), patch
    )
    return responses.item(next(item for item in view.items(secret) if item["name"] == name))


async def delete_variable(call: EndpointCall) -> web.StreamResponse:
    """Remove a variable. 204 also if it is not set."""
    project, name = await lookup.project(call), call.path("variable")
    existing = await _read(call, project)
    if name not in ((existing or {}).get("data") or {}):
        # Only kubectl sets other names; what it has set can be removed.
        _variable_name(call)
        return web.Response(status=204)
    now = call.services.now()
    await _write(
        call,
        project,
        lambda: view.new_secret(project.name, project.uid, {}, now),
        lambda secret: view.variable_patch(secret, project.name, name, None, now),
    )
    return web.Response(status=204)


def _variable_name(call: EndpointCall) -> str:
    """Return the name in the path. Raises a 400 for one that the API does not set."""
    name = call.path("variable")
    if not _NAME.match(name) or len(name) > schema.NAME["maxLength"]:
        raise errors.invalid(f"invalid name: {schema.NAME['description']}", "variable")
    return name


_PATH = "/v1/projects/{name}/env"
ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        list_variables,
        "read",
        query=pagination.PAGE_PARAMETERS,
        summary="List variables",
        responses=(page_response(schema.ITEM, schema.EXAMPLE, order="sorted by name"),),
        error_statuses=(409,),
    ),
    Endpoint(
        "PUT",
        _PATH,
        replace_variables,
        "deploy",
        body=schema.REPLACE,
        summary="Replace all variables",
        responses=(page_response(schema.ITEM, schema.EXAMPLE, has_links=False, order="sorted by name"),),
        error_statuses=(409,),
        example=schema.REPLACE_EXAMPLE,
    ),
    Endpoint(
        "PUT",
        _PATH + "/{variable}",
        set_variable,
        "deploy",
        body=schema.SET,
        summary="Set a variable",
        responses=(item_response(schema.ITEM, schema.EXAMPLE),),
        error_statuses=(409,),
        example=schema.SET_EXAMPLE,
    ),
    Endpoint(
        "DELETE",
        _PATH + "/{variable}",
        delete_variable,
        "deploy",
        summary="Remove a variable",
        responses=(empty_response("The variable is not set."),),
        error_statuses=(409,),
    ),
)
