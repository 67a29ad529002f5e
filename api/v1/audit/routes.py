"""Route of the audit log: pages, and all records as JSON lines."""

import json
from datetime import datetime

from aiohttp import web

from api import errors
from api.http import negotiation, pagination, responses
from api.http.operation import ResponseSpec, page_response
from api.http.query import Parameter
from api.routing import download
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.audit.audit_log import AuditFilter
from api.v1.audit import schema
from api.v1.fields import PROJECT_NAME, TEXT
from crds.times import parse_time

_TIME = {"type": "string", "minLength": 1, "maxLength": 40}


async def list_records(call: EndpointCall) -> web.StreamResponse:
    """List the changes made through the API, newest first; as JSON lines (Accept) all of them, oldest first.

    A caller who is admin of some projects sees the records of these.
    """
    wanted = _filter(call)
    if call.media_type == negotiation.JSON_LINES:
        with download.hold_download(call):
            return await _respond_lines(call, wanted)
    page = call.page
    found = await call.services.store.audit.page(wanted, page.offset, page.size)
    return responses.page(list(found.items), found.total, page)


def _filter(call: EndpointCall) -> AuditFilter:
    query, projects = call.query, call.caller.grants.projects_with("admin")
    if query["project"] is not None:
        call.caller.require_project(query["project"], "project", "admin")
        projects = frozenset({query["project"]})
    return AuditFilter(projects, query["actor"], _time(query["from"], "from"), _time(query["to"], "to"))


def _time(text: str | None, field: str) -> datetime | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise errors.invalid(f"{field} must be a time such as 2026-11-21T10:00:00Z", field) from error


async def _respond_lines(call: EndpointCall, wanted: AuditFilter) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": negotiation.JSON_LINES})
    await response.prepare(call.request)
    if call.request.method != "HEAD":
        async for records in call.services.store.audit.oldest_first(wanted):
            # In ASCII: readers of lines also split at U+2028 and others, which a path may have.
            text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
            await download.write(call.request, response, text.encode())
    await response.write_eof()
    return response


_PAGE = page_response(schema.RECORD, schema.EXAMPLE)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/audit",
        list_records,
        "admin",
        query=(
            Parameter("project", PROJECT_NAME, description="Only changes in this project."),
            Parameter(
                "actor",
                {"type": "string", "minLength": 1, "maxLength": 512},
                description="Only changes of this actor.",
            ),
            Parameter("from", _TIME, description="Only changes at or after this time."),
            Parameter("to", _TIME, description="Only changes before this time."),
            *pagination.PAGE_PARAMETERS,
        ),
        produces=(negotiation.JSON, negotiation.JSON_LINES),
        summary="Read the audit log",
        responses=(
            ResponseSpec(
                200,
                "A page, newest first, or JSON lines, oldest first.",
                {**_PAGE.content, negotiation.JSON_LINES: TEXT},
                optional_headers=("Link",),
                examples={**_PAGE.examples, negotiation.JSON_LINES: schema.LINES_EXAMPLE},
            ),
        ),
        error_statuses=(403,),
    ),
)
