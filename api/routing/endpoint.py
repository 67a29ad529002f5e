"""An API operation: its input, its required scope and its handler.

Runs the checks common to all routes in one order: a handler gets an authorized caller, valid
parameters, a valid body and the response media type. Called by `api.app`, which mounts the
endpoint tables of `api.v1`; the OpenAPI document is generated from the same tables.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from api.auth.principal import Caller
from api.auth.scopes import Scope
from api.http import expect_continue, negotiation, query, request_body, validation
from api.http.operation import ResponseSpec
from api.http.pagination import PageRequest
from api.http.query import Parameter
from api.http.response_cache import CachedResponse, ResponseCache
from api.routing import recorded
from api.routing.middleware import CALLER
from api.services import SERVICES, ApiServices

WAIT_PARAMETER = "wait"
EXPIRES = web.ResponseKey("expires", bool)
"""Key of a response that changes with time, without a change of a row."""
NO_BODY: Mapping[str, Any] = {"type": "object", "additionalProperties": False}
"""The body schema of an operation without a body: absent, or `{}`."""


@dataclass(frozen=True)
class EndpointCall:
    """A request that passed the checks."""

    request: web.Request
    services: ApiServices
    caller: Caller
    scope: Scope
    """The scope that the operation requires in the project it concerns."""
    query: Mapping[str, Any]
    body: Mapping[str, Any]
    media_type: str

    @property
    def page(self) -> PageRequest:
        """The requested page."""
        address = self.services.config.public_url + self.request.rel_url.raw_path
        return PageRequest(self.query["page"], self.query["per_page"], address, self.query)

    def path(self, name: str) -> str:
        """Return a path parameter."""
        return self.request.match_info[name]


Serve = Callable[[EndpointCall], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Endpoint:
    """An operation. `produces`: the media types of its responses, the default first.

    `cacheable`: the response depends on rows only, so it stays valid until a row changes; one that has
    EXPIRES set is not cached.
    `summary`, `responses`, `error_statuses`, `headers` and `example` are documentation (`api.openapi`);
    tests check every response against it.
    """

    method: str
    path: str
    serve: Serve
    scope: Scope
    query: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    produces: tuple[str, ...] = (negotiation.JSON,)
    head: bool = field(default=True)
    summary: str = ""
    responses: tuple[ResponseSpec, ...] = ()
    error_statuses: tuple[int, ...] = ()
    headers: tuple[Parameter, ...] = ()
    example: Any = None
    consumes: str = negotiation.JSON
    cacheable: bool = False

    @property
    def description(self) -> str:
        """The docstring of the handler."""
        return inspect.getdoc(self.serve) or ""

    def make_handler(self) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the request handler for aiohttp."""
        checker = validation.validator(self.body if self.body is not None else NO_BODY)
        cache = ResponseCache()

        async def handle(request: web.Request) -> web.StreamResponse:
            caller = request[CALLER]
            caller.require(self.scope)
            # A request that waits must not get the response of an earlier one.
            if not self.cacheable or WAIT_PARAMETER in request.query:
                return await serve_call(request, caller)
            database = request.app[SERVICES].store.database
            before = database.generation
            access = (caller.projects, caller.grants.projects_with(self.scope))
            key = (request.rel_url.raw_path_qs, _accept(request), *access)
            cached = cache.get(before, key)
            if cached is not None:
                return web.Response(body=cached.body, headers=cached.headers)
            response = await serve_call(request, caller)
            if (
                isinstance(response, web.Response)
                and response.status == 200
                and isinstance(response.body, bytes)
                and EXPIRES not in response
            ):
                cache.put(
                    before, database.generation, key, CachedResponse(response.body, dict(response.headers))
                )
            return response

        async def serve_call(request: web.Request, caller: Caller) -> web.StreamResponse:
            media_type = negotiation.choose(_accept(request), self.produces)
            values = query.parse(self.query, request.query.items())
            payload: Mapping[str, Any] = {}
            services = request.app[SERVICES]
            if self.method in ("POST", "PUT", "PATCH", "DELETE"):
                size = request_body.declared_bytes(request)
                async with services.bodies.reserve(caller.credential_id, size):
                    payload = await request_body.read(request, checker)
            call = EndpointCall(request, services, caller, self.scope, values, payload, media_type)
            return await (self.serve(call) if self.method == "GET" else recorded.serve(self.serve, call))

        return handle

    def mount(self, app: web.Application) -> None:
        """Add the route, and HEAD for a GET that does not stream."""
        handle = self.make_handler()
        app.router.add_route(self.method, self.path, handle, expect_handler=expect_continue.defer)
        if self.method == "GET" and self.head:
            app.router.add_route("HEAD", self.path, handle, expect_handler=expect_continue.defer)


def _accept(request: web.Request) -> str:
    return ", ".join(request.headers.getall("Accept", ()))
