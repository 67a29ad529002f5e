"""Routes of deployments: list, get, roll back, cancel; creation and erasure are in `create` and `erase`."""

from aiohttp import web

from api import errors
from api.http import pagination, responses
from api.http.operation import empty_response, item_response, page_response
from api.http.query import Parameter
from api.routing.endpoint import Endpoint, EndpointCall
from api.v1 import idempotency, lookup, wait
from api.v1.deployments import create, erase, schema, view
from api.v1.deployments.status_wait import wait_until
from api.v1.fields import EXAMPLE_PROJECT_NAME, PROJECT_NAME
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment
from kube import errors as kube_errors

ROLLBACK_TIMEOUT_SECONDS = 5.0
UNFINISHED = ("pending", "building")


async def list_deployments(call: EndpointCall) -> web.StreamResponse:
    """List the deployments of a project."""
    project = call.query["project"]
    call.caller.require_project(project, "project")
    page_request, status = call.page, call.query["status"]
    result = await call.services.store.deployments.page(
        project, page_request.offset, page_request.size, status
    )
    return responses.page([view.item(row) for row in result.items], result.total, page_request)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Get a deployment."""
    services = call.services
    row = await wait.until(
        call,
        call.query["wait"] or 0,
        lambda: lookup.deployment(call),
        lambda found: found.status not in UNFINISHED,
        services.store.deployments.mark,
        services.store.deployments.wait,
    )
    position = await services.store.build_queue.position(row)
    config = services.config
    return responses.item(view.detail(row, config.public_url, position, config.docs_url))


async def get_inputs(call: EndpointCall) -> web.StreamResponse:
    """Get the JSON Schema of the input of a deployment's entrypoint."""
    return responses.item(view.inputs(await lookup.deployment(call)))


async def rollback(call: EndpointCall) -> web.StreamResponse:
    """Activate a deployment again. 409 if it was never built, 503 if activation takes too long."""
    row = await lookup.deployment(call)
    if row.preview:
        raise errors.conflict("a preview cannot become active; run it by its id, or deploy its commit")
    if not row.built:
        raise errors.conflict(
            f"cannot roll back to this deployment: it is {row.status} and was never built; "
            "choose an active or superseded one"
        )
    manifest = await call.services.kube.at(row.object_namespace).patch(
        DEPLOYMENT, row.name, {"metadata": {"uid": row.uid}, "spec": {"activation": row.activation + 1}}
    )
    await call.services.store.deployments.observe(Deployment(manifest))
    row = await wait_until(call, row, lambda current: current.status == "active", ROLLBACK_TIMEOUT_SECONDS)
    if row.status != "active":
        raise errors.unavailable("the rollback has started but is not finished; repeat the request to check")
    return responses.item(view.detail(row, call.services.config.public_url))


async def cancel(call: EndpointCall) -> web.StreamResponse:
    """Cancel the build. 200 if it is already canceled, 409 if it has ended otherwise."""
    row, services = await lookup.deployment(call), call.services
    if not row.ended:
        patch = {"metadata": {"uid": row.uid}, "spec": {"cancel": True}}
        try:
            raw = await services.kube.at(row.object_namespace).patch(DEPLOYMENT, row.name, patch)
        except (kube_errors.Invalid, kube_errors.KubeNotFound):
            # The build ended meanwhile or the object was deleted; the row shows it once the end is recorded.
            row = await lookup.deployment(call)
            if not row.ended:
                raise errors.unavailable(
                    "the build is ending; repeat the request to see its outcome"
                ) from None
        else:
            await services.store.deployments.observe(Deployment(raw))
            row = await lookup.deployment(call)
            return responses.item(view.detail(row, services.config.public_url), 202)
    if not row.canceled:
        raise errors.conflict(
            f"the build has already ended: the deployment is {row.status}", status=row.status
        )
    return responses.item(view.detail(row, services.config.public_url, docs_url=services.config.docs_url))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/deployments",
        list_deployments,
        "read",
        cacheable=True,
        query=(
            Parameter(
                "project",
                PROJECT_NAME,
                required=True,
                description="A project's name.",
                example=EXAMPLE_PROJECT_NAME,
            ),
            Parameter("status", {"type": "string", "enum": schema.STATUSES}),
            *pagination.PAGE_PARAMETERS,
        ),
        summary="List deployments",
        responses=(page_response(schema.ITEM, schema.ITEM_EXAMPLE),),
        error_statuses=(403,),
    ),
    Endpoint(
        "POST",
        "/v1/deployments",
        create.create,
        "preview",
        body=schema.CREATE,
        headers=(idempotency.PARAMETER,),
        summary="Create a deployment",
        responses=(item_response(schema.CREATED, schema.CREATED_EXAMPLE, 201),),
        error_statuses=(404, 409),
        example=schema.CREATE_EXAMPLE,
    ),
    Endpoint(
        "GET",
        "/v1/deployments/{id}",
        get,
        "read",
        cacheable=True,
        query=(wait.WAIT,),
        summary="Get a deployment",
        responses=(item_response(schema.DETAIL, schema.EXAMPLE),),
    ),
    Endpoint(
        "DELETE",
        "/v1/deployments/{id}",
        erase.erase,
        "deploy",
        summary="Erase a deployment",
        responses=(empty_response("The deployment is erased; its image follows within minutes."),),
        error_statuses=(409,),
    ),
    Endpoint(
        "GET",
        "/v1/deployments/{id}/inputs",
        get_inputs,
        "read",
        cacheable=True,
        summary="Get the schema of a deployment's input",
        responses=(item_response(schema.INPUTS, schema.INPUTS_EXAMPLE),),
    ),
    Endpoint(
        "POST",
        "/v1/deployments/{id}/rollback",
        rollback,
        "deploy",
        summary="Roll back to a deployment",
        responses=(item_response(schema.DETAIL, schema.EXAMPLE, description="The deployment is active."),),
        error_statuses=(409,),
    ),
    Endpoint(
        "POST",
        "/v1/deployments/{id}/cancel",
        cancel,
        "deploy",
        summary="Cancel a deployment's build",
        responses=(
            item_response(schema.DETAIL, schema.EXAMPLE, description="The build is already canceled."),
            item_response(schema.DETAIL, schema.EXAMPLE, 202, "The build will be canceled."),
        ),
        error_statuses=(409,),
    ),
)
