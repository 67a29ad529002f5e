"""A proxy between one process and the apiserver, which does by rules what networks and apiservers do.

    async with apiserver_proxy(directory) as proxy:
        process = start(KUBECONFIG=proxy.kubeconfig)
        proxy.rules.append(LostResponse(lambda call: call.writes, nth=3))

Towards the process it is an apiserver with an authority of its own; towards the
apiserver it has the credentials of the current kubeconfig. Called by the tests of
cut points, of watches and of seeded bugs.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from aiohttp import web
from kubernetes.aio import client, config

from tests.campaign.proxy.authority import certificate, kubeconfig
from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import ProxiedEvent, ProxyCut, ProxyRule, ReplacedResponse
from tests.campaign.proxy.stream import WatchStream

HOP = (
    "host", "connection", "transfer-encoding", "content-length", "content-encoding", "accept-encoding",
    "authorization",
)  # fmt: skip


class ApiserverProxy:
    """What one process takes for the apiserver. `rules` may change at any time."""

    def __init__(self, url: str, secure: ssl.SSLContext) -> None:
        self.rules: list[ProxyRule] = []
        self.kubeconfig = Path()
        self._url, self._secure = url, secure
        self._streams: set[WatchStream] = set()
        self._held = 0
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        # No connection limit: each watch occupies one.
        connector = aiohttp.TCPConnector(limit=0)
        # One event of a watch is a line, however large its object.
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 24)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """One request, there and back."""
        call = ProxiedRequest(request.method, request.path, dict(request.query), await request.read())
        try:
            return await self._do(request, call)
        except ProxyCut:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    def make_half_open(self) -> int:
        """Make the watches that are open half open: silent for as long as the process keeps them.

        Gives how many; later ones work.
        """
        for stream in self._streams:
            stream.held = True
        self._held += len(self._streams)
        return len(self._streams)

    @property
    def injected(self) -> int:
        """How often something was disturbed, by the rules that there are now and by `make_half_open`."""
        return self._held + sum(rule.injected for rule in self.rules)

    async def _do(self, request: web.Request, call: ProxiedRequest) -> web.StreamResponse:
        for rule in list(self.rules):
            instead = await rule.on_request(call)
            if instead is not None:
                return _answer(instead)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        async with self._session.request(
            call.method,
            self._url + request.path_qs,
            data=call.body or None,
            headers=headers,
            ssl=self._secure,
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
            if call.subresource == "log" or (call.watches and answer.status == 200):
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                await (self._watch if call.watches else _copy)(answer, response, call)
                return response
            body = await answer.read()
            for rule in list(self.rules):
                await rule.on_response(call, answer.status, body)
            return web.Response(status=answer.status, body=body, headers=kept)

    async def _watch(
        self, answer: aiohttp.ClientResponse, response: web.StreamResponse, call: ProxiedRequest
    ) -> None:
        stream = WatchStream(call, lambda event: _lateness(self.rules, event), response.write)
        self._streams.add(stream)
        try:
            await stream.carry(answer.content)
        finally:
            self._streams.discard(stream)

    async def close(self) -> None:
        """Close the connections to the apiserver."""
        await self._session.close()


def _lateness(rules: list[ProxyRule], event: ProxiedEvent) -> float | None:
    late = 0.0
    for rule in rules:
        more = rule.event_delay(event)
        if more is None:
            return None
        late = max(late, more)
    return late


def _answer(instead: ReplacedResponse) -> web.Response:
    return web.Response(status=instead.status, body=instead.body, content_type="application/json")


async def _copy(answer: aiohttp.ClientResponse, response: web.StreamResponse, call: ProxiedRequest) -> None:
    with suppress(ConnectionError):
        async for chunk in answer.content.iter_any():
            await response.write(chunk)


@asynccontextmanager
async def apiserver_proxy(directory: Path) -> AsyncIterator[ApiserverProxy]:
    """A proxy before the apiserver of the current kubeconfig, while the block runs."""
    settings = client.Configuration()
    await config.load_kube_config(client_configuration=settings)
    secure = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    secure.load_cert_chain(settings.cert_file, settings.key_file)
    proxy = ApiserverProxy(settings.host, secure)
    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/{path:.*}", proxy.forward)
    # The requests of an exited process end with it.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(await asyncio.to_thread(certificate, directory))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=own).start()
    proxy.kubeconfig = kubeconfig(directory, runner.addresses[0][1])
    try:
        yield proxy
    finally:
        await runner.cleanup()
        await proxy.close()
