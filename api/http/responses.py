"""JSON answers: the envelope, the page, the error. Called by routes and by `api.routing.middleware`."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from api.errors import ApiError
from api.http import pagination
from api.http.json_encoding import encode


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=encode(body), content_type="application/json", headers=headers)


def one(data: Any, status: int = 200, location: str | None = None) -> web.Response:
    """A single object: `{data}`, with `Location` where it was created."""
    return _json(status, {"data": data}, {"Location": location} if location else None)


def page(data: Sequence[Any], total: int, asked: pagination.Page) -> web.Response:
    """A page of a list: `{data, pagination}`, and the addresses of the pages around it."""
    links = asked.links(total)
    return _json(200, pagination.envelope(data, total, asked), {"Link": links} if links else None)


def failure(error: ApiError) -> web.Response:
    """`{error: {code, message, details}}`."""
    return _json(error.status, error.body(), error.headers)
