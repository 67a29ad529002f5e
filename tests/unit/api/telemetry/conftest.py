"""The store with SQLite and with PostgreSQL, and a real receiver of OTLP."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from multidict import CIMultiDictProxy
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.testbed.ports import free_port
from tests.unit.api.store.conftest import database_url, postgres, store

__all__ = ["database_url", "postgres", "store"]
GOOD = "127.0.0.2"


class SpanReceiver:
    """Receives spans; `answers` are the responses to the next requests, then 200. `hold`: respond later."""

    def __init__(self) -> None:
        self.port = free_port()
        self.answers: list[web.Response] = []
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[CIMultiDictProxy[str]] = []
        self.arrived, self.hold = asyncio.Event(), asyncio.Event()
        self.hold.set()
        self._runner: web.AppRunner | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{GOOD}:{self.port}"

    def ids(self, request: int = -1) -> list[tuple[str, str]]:
        """Return name and id of each span of a request."""
        scope = self.requests[request].resource_spans[0].scope_spans[0]
        return [(span.name, span.span_id.hex()) for span in scope.spans]

    async def start(self) -> None:
        async def receive(request: web.Request) -> web.Response:
            self.requests.append(ExportTraceServiceRequest.FromString(await request.read()))
            self.headers.append(request.headers)
            self.arrived.set()
            await self.hold.wait()
            return self.answers.pop(0) if self.answers else web.Response()

        application = web.Application(client_max_size=1 << 24)
        application.router.add_post("/v1/traces", receive)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, GOOD, self.port).start()

    async def stop(self) -> None:
        self.hold.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


@pytest.fixture
async def receiver() -> AsyncIterator[SpanReceiver]:
    made = SpanReceiver()
    yield made
    await made.stop()
