"""An apiserver that says what a test lets it say, and a connection to it; for tests of refusals and cuts."""

import contextlib
from collections.abc import AsyncIterator, Iterable

from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from kube.client import KubeClient


@contextlib.asynccontextmanager
async def serving(routes: Iterable[web.RouteDef]) -> AsyncIterator[KubeClient]:
    """A connection to the namespace `crews` of a server with these routes."""
    app = web.Application()
    app.add_routes(routes)
    async with TestServer(app) as server:
        host = str(server.make_url("")).rstrip("/")
        kube = KubeClient(client.ApiClient(client.Configuration(host=host)), "crews")
        yield kube
        await kube.close()
