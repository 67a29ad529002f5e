"""JSON responses: object, page and error. Called by routes and by `api.routing.middleware`."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from api.errors import HttpApiError
from api.http import pagination
from api.http.json_encoding import encode


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=encode(body), content_type="application/json", headers=headers)


def item(data: Any, status: int = 200, location: str | None = None) -> web.Response:
    """Return a single object as `{data}`, with a Location header if it was created."""
    return _json(status, {"data": data}, {"Location": location} if location else None)


def page(
    data: Sequence[Any], total: int, page_request: pagination.PageRequest, capped: bool = False
) -> web.Response:
    """Return a page of a list as `{data, pagination}`, with a Link header."""
    links = page_request.links(total)
    body = pagination.envelope(data, total, page_request, capped)
    return _json(200, body, {"Link": links} if links else None)


def error_response(error: HttpApiError) -> web.Response:
    """Return an error as `{error: {code, message, details}}`."""
    return _json(error.status, error.body(), error.headers)
