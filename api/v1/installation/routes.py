"""Route of the installation's state, for its operators."""

from aiohttp import web

from api import errors
from api.http import responses
from api.http.operation import item_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.v1.deployments import view as deployments
from api.v1.installation import schema
from api.v1.installation.components import check_components

MAX_LISTED_BUILDS = 100


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return whether the parts of the installation work, and what waits and runs in all projects.

    For callers who are admin of all projects.
    """
    if not call.caller.grants.administers_all:
        raise errors.forbidden(
            "this needs a key with the scope admin for all projects; ask the operator",
            required_scope="admin",
        )
    services = call.services
    store = services.store
    components = await check_components(services)
    pending, running = [(await store.runs.page(0, 0, statuses=[s])).total for s in ("pending", "running")]
    builds = await store.build_queue.first(MAX_LISTED_BUILDS)
    await store.deliveries.measure()
    return responses.item(
        {
            "components": [
                {"name": part.name, "ready": part.ready, "message": part.message or None}
                for part in components
            ],
            "leading": store.leader.leading,
            "runs": {"pending": pending, "running": running},
            "builds": {
                "waiting": builds.waiting,
                "running": builds.running,
                "slots": services.config.max_builds * len(services.config.served_namespaces),
                "deployments": [deployments.item(row) for row in builds.rows],
            },
            "notifications": {"pending": store.deliveries.pending, "failing": store.deliveries.failing},
        }
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/installation",
        get,
        "admin",
        summary="Get the installation",
        responses=(item_response(schema.INSTALLATION, schema.EXAMPLE),),
    ),
)
