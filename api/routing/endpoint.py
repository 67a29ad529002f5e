"""One operation of the API: what it takes, who may call it, and what serves it.

The checks that are the same everywhere happen here, in one order, so that a
route's function gets a caller who may, parameters and a body that fit, and the
media type to answer with. Called by `api.app`, which mounts the table of
`api.v1`; a description of the API is made from the same table.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from api.auth.principal import Caller
from api.auth.scopes import Scope
from api.http import (
    expect_continue,
    validation,
)
from api.http import (
    negotiation as media,
)
from api.http import (
    query as parameters,
)
from api.http import (
    request_body as body,
)
from api.http.operation import Answer
from api.http.pagination import Page
from api.http.query import Parameter
from api.http.response_cache import Answer as Told
from api.http.response_cache import Remembered
from api.routing.middleware import CALLER
from api.services import SERVICES, Services

NOTHING: Mapping[str, Any] = {"type": "object", "additionalProperties": False, "maxProperties": 0}
"""The body of a call that takes none: absent, or `{}`."""


@dataclass(frozen=True)
class Call:
    """A request that has passed the checks."""

    request: web.Request
    services: Services
    caller: Caller
    scope: Scope
    """What the operation needs, in the project that it turns out to be about."""
    query: Mapping[str, Any]
    body: Mapping[str, Any]
    media: str

    @property
    def page(self) -> Page:
        """The page that is asked for."""
        address = self.services.config.public_url + self.request.rel_url.raw_path
        return Page(self.query["page"], self.query["per_page"], address, self.query)

    def path(self, name: str) -> str:
        """A part of the path."""
        return self.request.match_info[name]


Serve = Callable[[Call], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Endpoint:
    """An operation. `produces`: the media types it can answer with, the default first.

    `remembers`: it answers from rows alone, so that the same answer holds until one changes.
    `summary`, `answers`, `refusals`, `headers` and `example` describe it (`api.openapi`); tests hold it so.
    """

    method: str
    path: str
    serve: Serve
    scope: Scope
    query: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    produces: tuple[str, ...] = (media.JSON,)
    head: bool = field(default=True)
    summary: str = ""
    answers: tuple[Answer, ...] = ()
    refusals: tuple[int, ...] = ()
    headers: tuple[Parameter, ...] = ()
    example: Any = None
    takes: str = media.JSON
    remembers: bool = False

    @property
    def description(self) -> str:
        """What the route's function promises."""
        return inspect.getdoc(self.serve) or ""

    def handler(self) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """What aiohttp calls."""
        checker = validation.validator(self.body if self.body is not None else NOTHING)
        told = Remembered()

        async def handle(request: web.Request) -> web.StreamResponse:
            caller = request[CALLER]
            caller.require(self.scope)
            if not self.remembers:
                return await answer(request, caller)
            database = request.app[SERVICES].store.database
            before = database.generation
            held = (caller.projects, caller.grants.where(self.scope))
            question = (request.rel_url.raw_path_qs, request.headers.get("Accept"), *held)
            known = told.get(before, question)
            if known is not None:
                return web.Response(body=known.body, headers=known.headers)
            made = await answer(request, caller)
            if isinstance(made, web.Response) and made.status == 200 and isinstance(made.body, bytes):
                told.put(before, database.generation, question, Told(made.body, dict(made.headers)))
            return made

        async def answer(request: web.Request, caller: Caller) -> web.StreamResponse:
            chosen = media.choose(request.headers.get("Accept"), self.produces)
            query = parameters.parse(self.query, request.query.items())
            given: Mapping[str, Any] = {}
            if self.method in ("POST", "PUT", "PATCH", "DELETE"):
                given = await body.read(request, checker)
            services = request.app[SERVICES]
            return await self.serve(Call(request, services, caller, self.scope, query, given, chosen))

        return handle

    def mount(self, app: web.Application) -> None:
        """Adds the operation, and HEAD beside a GET that does not stream."""
        handle = self.handler()
        app.router.add_route(self.method, self.path, handle, expect_handler=expect_continue.later)
        if self.method == "GET" and self.head:
            app.router.add_route("HEAD", self.path, handle, expect_handler=expect_continue.later)
