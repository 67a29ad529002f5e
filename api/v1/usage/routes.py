"""Route of usage: the usage of a project by UTC day."""

from datetime import UTC, date

from aiohttp import web

from api import errors
from api.http import negotiation, responses
from api.http.operation import ResponseSpec, item_response
from api.http.query import Parameter
from api.routing.endpoint import Endpoint, EndpointCall
from api.v1 import lookup
from api.v1.fields import TEXT
from api.v1.usage import schema, view
from api.v1.usage.limits import limits_of

MAX_DAYS = 366
DEFAULT_DAYS = 30
_DAY = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return the usage of a project's runs and builds by the UTC day they ended, as JSON or CSV (Accept).

    The JSON also has the project's limits, and how much of each it uses now.
    """
    project = await lookup.project(call)
    first, last = _day_range(call)
    days = await call.services.store.usage.days(project.uid, first, last)
    report = view.report(project.name, first, last, days, call.services.config.prices)
    if call.media_type == negotiation.CSV:
        return web.Response(text=view.to_csv(report), content_type=negotiation.CSV, charset="utf-8")
    return responses.item({**report, "limits": view.limits(await limits_of(call.services, project))})


def _day_range(call: EndpointCall) -> tuple[date, date]:
    """Return the requested first and last day, both included. Raises 400."""
    query = call.query
    last = date.fromisoformat(query["to"]) if query["to"] else call.services.now().astimezone(UTC).date()
    earliest = date.fromordinal(max(1, last.toordinal() - DEFAULT_DAYS + 1))
    first = date.fromisoformat(query["from"]) if query["from"] else earliest
    if first > last:
        raise errors.invalid("from must not be after to", "from")
    if (last - first).days >= MAX_DAYS:
        raise errors.invalid(f"from and to may span at most {MAX_DAYS} days", "from")
    return first, last


_JSON = item_response(schema.REPORT, schema.EXAMPLE)
_RESPONSE = ResponseSpec(
    200,
    "The usage of each day and the total.",
    {**_JSON.content, negotiation.CSV: TEXT},
    examples={**_JSON.examples, negotiation.CSV: schema.CSV_EXAMPLE},
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/projects/{name}/usage",
        get,
        "read",
        query=(
            Parameter(
                "from", _DAY, description=f"The first day; {DEFAULT_DAYS - 1} days before `to` if omitted."
            ),
            Parameter("to", _DAY, description="The last day; today (UTC) if omitted."),
        ),
        produces=(negotiation.JSON, negotiation.CSV),
        summary="Get a project's usage",
        responses=(_RESPONSE,),
    ),
)
