"""Routes of projects: create, list, get, update, delete."""

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import empty_response, item_response, page_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.audit.change import describe
from api.store.index.projects import ProjectRow
from api.v1 import lookup, plans
from api.v1.projects import schema, view
from api.v1.projects.spec_patch import patch_spec
from api.v1.schedules import check as schedule_check
from crds import names
from crds.kinds import PROJECT
from crds.objects import DEFAULT_PLAN, Project
from crds.teams.namespaces import place_of
from kube import errors as kube_errors


def _require_admin(call: EndpointCall, project: str, fields: Iterable[str]) -> None:
    """Raise 403 for the first of these fields unless the caller is admin."""
    for field in fields:
        if not call.caller.may("admin", project):
            raise errors.forbidden(
                f"{field} needs the scope admin; leave it out, or use a key that has it",
                field=field,
                required_scope="admin",
            )


def _check_plan(call: EndpointCall, plan: str) -> None:
    """Raise 400 for an unknown new plan, and 403 for any unless the caller is an admin of all projects."""
    requested, known = call.body.get("plan"), call.services.config.plans.by_name
    if requested is not None and requested != plan and requested not in known:
        raise errors.invalid(f"plan must be one of {', '.join(sorted(known))}", "plan")
    if not call.caller.grants.administers_all and call.body.get("plan", plan) != plan:
        raise errors.forbidden(
            "plan needs a key with the scope admin for all projects: leave it out, or ask the operator",
            field="plan",
            required_scope="admin",
        )


async def _stored(call: EndpointCall, name: str) -> ProjectRow:
    row = await call.services.store.projects.get(name)
    if row is None:
        raise errors.not_found(f"the project {name} was deleted meanwhile")
    return row


def _place(call: EndpointCall) -> str | None:
    """Return the namespace that the body names, None for the installation's own.

    Raises 403 if the caller may create no project there, 400 if it is not served.
    """
    config, namespace = call.services.config, call.body.get("namespace")
    place = None if namespace is None else place_of(namespace, config.namespace)
    if not call.caller.may_create_in(place, call.scope):
        raise errors.forbidden(
            f"you may create no projects in the namespace {namespace or config.namespace}; name one of your "
            "team, or use a key with the scope admin for all projects",
            field="namespace",
        )
    if place is not None and place not in config.namespaces:
        raise errors.invalid(
            f"the namespace {place} is not served; ask the operator to add it to CREWYARD_NAMESPACES",
            "namespace",
        )
    return place


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create a project."""
    name, place = call.body["name"], _place(call)
    if call.caller.namespaces is None:
        call.caller.require_project(name, "name", call.scope)
    if call.caller.namespaces is None or not call.caller.may_create_in(place, "admin"):
        _require_admin(call, name, view.admin_fields(call.body))
    plans.check_known(call)
    _check_plan(call, DEFAULT_PLAN)
    describe(name, name)
    metadata = {
        "name": name,
        "labels": {names.LABEL_PROJECT: name},
        "annotations": {names.ANNOTATION_CREATED_BY: call.caller.principal},
    }
    body = {"metadata": metadata, "spec": view.spec(call.body)}
    await schedule_check.check_project_schedules(call, name, body["spec"])
    taken = errors.conflict(f"a project named {name} already exists; choose another name", field="name")
    kube, projects = call.services.kube.at(place), call.services.store.projects
    if call.services.config.namespaces and await projects.get(name) is not None:
        # The kube-apiserver refuses a name only within its namespace.
        raise taken
    try:
        manifest = await kube.create(PROJECT, body)
    except kube_errors.AlreadyExists as error:
        raise taken from error
    await projects.observe(Project(manifest))
    row = await projects.get(name)
    uid = manifest["metadata"]["uid"]
    if row is None or row.uid != uid:
        await kube.delete(PROJECT, name, uid=uid)
        if row is not None and row.object_namespace != place:
            raise taken
        projects.start_removal(name, uid, call.services.now())
        raise errors.conflict(
            f"the project {name} is still being deleted; try again later, or choose another name",
            field="name",
        )
    return responses.item(view.item(row), 201, f"/v1/projects/{name}")


async def list_projects(call: EndpointCall) -> web.StreamResponse:
    """List the projects of the key."""
    readable = call.caller.grants.projects_with("read")
    result = await call.services.store.projects.page(call.page.offset, call.page.size, readable)
    return responses.page([view.item(row) for row in result.items], result.total, call.page)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Get a project."""
    return responses.item(view.item(await lookup.project(call)))


async def update(call: EndpointCall) -> web.StreamResponse:
    """Merge the body into the project: omitted fields stay, null removes a field."""
    row = await lookup.project(call)
    # Refused early where the row shows it; `change` decides on the object.
    _require_admin(call, row.name, view.admin_fields(call.body))
    plans.check_known(call, row.as_object().plan)
    _check_plan(call, row.as_object().plan)
    await schedule_check.check_project_schedules(call, row.name, view.spec(call.body), row)

    def change(project: Project) -> dict[str, Any]:
        _require_admin(call, row.name, view.redirected_secrets(call.body, project.spec))
        _require_admin(call, row.name, view.dropped_verification(call.body, project.spec))
        _check_plan(call, project.plan)
        return view.spec(call.body)

    await patch_spec(call, row, change)
    return responses.item(view.item(await _stored(call, row.name)))


async def delete(call: EndpointCall) -> web.StreamResponse:
    """Delete a project with everything that belongs to it and stop its runs."""
    row = await lookup.project(call)
    await call.services.kube.at(row.object_namespace).delete(PROJECT, row.name, uid=row.uid)
    await call.services.store.projects.remove(row.name, row.uid, call.services.now())
    return web.Response(status=204)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/projects",
        list_projects,
        "read",
        cacheable=True,
        query=pagination.PAGE_PARAMETERS,
        summary="List projects",
        responses=(page_response(schema.DETAIL, schema.EXAMPLE),),
    ),
    Endpoint(
        "POST",
        "/v1/projects",
        create,
        "deploy",
        body=schema.CREATE,
        summary="Create a project",
        responses=(item_response(schema.DETAIL, schema.EXAMPLE, 201),),
        error_statuses=(404, 409),
        example=schema.CREATE_EXAMPLE,
    ),
    Endpoint(
        "GET",
        "/v1/projects/{name}",
        get,
        "read",
        cacheable=True,
        summary="Get a project",
        responses=(item_response(schema.DETAIL, schema.EXAMPLE),),
    ),
    Endpoint(
        "PATCH",
        "/v1/projects/{name}",
        update,
        "deploy",
        body=schema.PATCH,
        summary="Change a project",
        responses=(item_response(schema.DETAIL, schema.EXAMPLE),),
        error_statuses=(409,),
        example=schema.PATCH_EXAMPLE,
    ),
    Endpoint(
        "DELETE",
        "/v1/projects/{name}",
        delete,
        "admin",
        summary="Delete a project",
        responses=(empty_response("The project is deleted, with everything that belongs to it."),),
        error_statuses=(409,),
    ),
)
