"""Routes of usage: that of a project by UTC day, and that of all projects."""

from datetime import UTC, date

from aiohttp import web

from api import errors
from api.budgets import month_use
from api.http import negotiation, pagination, responses
from api.http.operation import ResponseSpec, item_response, page_response
from api.http.query import Parameter
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.usage import Measures
from api.v1 import lookup
from api.v1.fields import TEXT
from api.v1.usage import schema, view
from api.v1.usage.limits import limits_of

MAX_DAYS = 366
DEFAULT_DAYS = 30
_DAY = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return the usage of a project's runs and builds by the UTC day they ended, as JSON or CSV (Accept).

    The JSON also has the project's limits and its budgets, and how much of each it uses now.
    """
    project = await lookup.project(call)
    first, last = _day_range(call)
    days = await call.services.store.usage.days(project.uid, first, last)
    report = view.report(project.name, first, last, days, call.services.config.prices)
    if call.media_type == negotiation.CSV:
        return web.Response(text=view.to_csv(report), content_type=negotiation.CSV, charset="utf-8")
    services, now = call.services, call.services.now()
    use = await month_use(services.store, services.config.prices, project.uid, now)
    budget = view.budget(project.as_object(), use, now)
    limits = view.limits(await limits_of(services, project))
    budgets = {"budget": budget, "run_budget": view.run_budget(project.as_object())}
    return responses.item({**report, "limits": limits, **budgets})


async def list_usage(call: EndpointCall) -> web.StreamResponse:
    """List the projects, the newest first, with their usage in a range of UTC days."""
    services, page, (first, last) = call.services, call.page, _day_range(call)
    readable = call.caller.grants.projects_with("read")
    found = await services.store.projects.page(page.offset, page.size, readable)
    used = await services.store.usage.totals([row.uid for row in found.items], first, last)
    prices = services.config.prices
    items = [
        view.project_item(row.name, first, last, used.get(row.uid, Measures()), prices) for row in found.items
    ]
    return responses.page(items, found.total, page)


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
_DAYS = (
    Parameter("from", _DAY, description=f"The first day; {DEFAULT_DAYS - 1} days before `to` if omitted."),
    Parameter("to", _DAY, description="The last day; today (UTC) if omitted."),
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/usage",
        list_usage,
        "read",
        query=(*_DAYS, *pagination.PAGE_PARAMETERS),
        summary="List the usage of projects",
        responses=(page_response(schema.PROJECT_USAGE, schema.PROJECT_EXAMPLE),),
    ),
    Endpoint(
        "GET",
        "/v1/projects/{name}/usage",
        get,
        "read",
        query=_DAYS,
        produces=(negotiation.JSON, negotiation.CSV),
        summary="Get a project's usage",
        responses=(_RESPONSE,),
    ),
)
