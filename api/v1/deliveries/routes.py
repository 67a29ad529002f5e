"""Routes of deliveries: list those of a project, and redeliver one."""

from aiohttp import web

from api.http import pagination, responses
from api.http.operation import item_response, page_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.audit.change import describe
from api.v1 import lookup
from api.v1.deliveries import schema, view

_PATH = "/v1/projects/{name}/deliveries"


async def list_deliveries(call: EndpointCall) -> web.StreamResponse:
    """List the deliveries of a project's notifications in the last seven days."""
    project, page, services = await lookup.project(call), call.page, call.services
    result = await services.store.deliveries.page(project.uid, services.now(), page.offset, page.size)
    return responses.page([view.item(row) for row in result.items], result.total, page)


async def redeliver(call: EndpointCall) -> web.StreamResponse:
    """Send a delivery again, with the same id and the object as it is now."""
    project, services, delivery = await lookup.project(call), call.services, call.path("id")
    describe(project.name, delivery[:52])
    row = await services.store.deliveries.redeliver(project.uid, delivery, services.now())
    return responses.item(view.item(row), 202)


ENDPOINTS = (
    Endpoint(
        "GET",
        _PATH,
        list_deliveries,
        "read",
        query=pagination.PAGE_PARAMETERS,
        summary="List deliveries",
        responses=(page_response(schema.ITEM, schema.EXAMPLE),),
    ),
    Endpoint(
        "POST",
        _PATH + "/{id}/redeliver",
        redeliver,
        "deploy",
        summary="Redeliver a notification",
        responses=(item_response(schema.ITEM, schema.EXAMPLE, 202, "The delivery will be sent again."),),
    ),
)
