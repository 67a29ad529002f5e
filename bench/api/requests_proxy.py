"""Counting proxy in front of the apiserver, for an API server whose kubeconfig points to it.

Called by `bench.api.requests`. Streams watches.
"""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from kubernetes.aio import client, config

HOP_HEADERS = ("host", "connection", "transfer-encoding", "content-length", "accept-encoding")


class CountingProxy:
    """`seen` has method and path of every forwarded request."""

    def __init__(self, url: str, secure: ssl.SSLContext) -> None:
        self.seen: list[tuple[str, str]] = []
        self._url, self._secure = url, secure
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False)

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Forward one request and its response."""
        self.seen.append((request.method, request.path_qs))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_HEADERS}
        async with self._session.request(
            request.method,
            self._url + request.path_qs,
            data=await request.read(),
            headers=headers,
            ssl=self._secure,
        ) as upstream:
            response_headers = {
                name: value for name, value in upstream.headers.items() if name.lower() not in HOP_HEADERS
            }
            response = web.StreamResponse(status=upstream.status, headers=response_headers)
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


@asynccontextmanager
async def counting_proxy(directory: Path) -> AsyncIterator[tuple[CountingProxy, Path]]:
    """Run the proxy during the block; yield it and a kubeconfig that points to it."""
    settings = client.Configuration()
    await config.load_kube_config(client_configuration=settings)
    secure = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    assert settings.cert_file is not None, "the kubeconfig has no client certificate"
    secure.load_cert_chain(settings.cert_file, settings.key_file)
    proxy = CountingProxy(settings.host, secure)
    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/{path:.*}", proxy.pass_on)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    file = directory / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "here", "user": {}}],
    }
    file.write_text(json.dumps(document))
    try:
        yield proxy, file
    finally:
        await runner.cleanup()
        await proxy.close()
