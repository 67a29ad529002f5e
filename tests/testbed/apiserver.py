"""An apiserver stub with given routes and a client of it, for tests of refusals and broken connections."""

import contextlib
from collections.abc import AsyncIterator, Iterable

from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from kube.client import KubeClient


@contextlib.asynccontextmanager
async def serving(routes: Iterable[web.RouteDef]) -> AsyncIterator[KubeClient]:
    """Yield a client of the namespace `crews` of a server with these routes."""
    app = web.Application()
    app.add_routes(routes)
    async with TestServer(app) as server:
        host = str(server.make_url("")).rstrip("/")
        kube = KubeClient(client.ApiClient(client.Configuration(host=host)), "crews")
        yield kube
        await kube.close()
