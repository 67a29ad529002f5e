"""Usage: what a project used, by UTC day."""

from datetime import UTC, date

from aiohttp import web

from api import errors
from api.http import negotiation, responses
from api.http.operation import Answer, one
from api.http.query import Parameter
from api.openapi import examples, shapes
from api.routing.endpoint import Call, Endpoint
from api.v1 import lookup
from api.v1.usage import view

MAX_DAYS = 366
DAYS = 30
_DAY = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


async def get(call: Call) -> web.StreamResponse:
    """What a project's runs and builds used, each on the UTC day it ended; as JSON, or as CSV by Accept."""
    project = await lookup.project(call)
    first, last = _span(call)
    days = await call.services.store.usage.days(project.uid, first, last)
    shown = view.report(project.name, first, last, days, call.services.config.prices)
    if call.media == negotiation.CSV:
        return web.Response(text=view.table(shown), content_type=negotiation.CSV, charset="utf-8")
    return responses.one(shown)


def _span(call: Call) -> tuple[date, date]:
    """The days that are asked for, both included. Raises a 400."""
    given = call.query
    last = date.fromisoformat(given["to"]) if given["to"] else call.services.now().astimezone(UTC).date()
    earliest = date.fromordinal(max(1, last.toordinal() - DAYS + 1))
    first = date.fromisoformat(given["from"]) if given["from"] else earliest
    if first > last:
        raise errors.invalid("from must not be after to", "from")
    if (last - first).days >= MAX_DAYS:
        raise errors.invalid(f"from and to may span at most {MAX_DAYS} days", "from")
    return first, last


_JSON = one(shapes.USAGE, examples.USAGE)
_ANSWER = Answer(
    200,
    "The usage of each day, and their sum.",
    {**_JSON.content, negotiation.CSV: shapes.TEXT},
    examples={**_JSON.examples, negotiation.CSV: examples.USAGE_CSV},
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/projects/{name}/usage",
        get,
        "read",
        query=(
            Parameter("from", _DAY, description=f"The first day; {DAYS - 1} days before `to` if left out."),
            Parameter("to", _DAY, description="The last day; today (UTC) if left out."),
        ),
        produces=(negotiation.JSON, negotiation.CSV),
        summary="Get a project's usage",
        answers=(_ANSWER,),
    ),
)
