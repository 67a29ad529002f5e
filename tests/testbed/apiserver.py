"""An apiserver stub with given routes and a client of it, for tests of refusals and broken connections."""

import contextlib
import functools
from collections.abc import AsyncIterator, Iterable

from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from kube.client import KubeClient
from tests.testbed.certificates import certificate


@functools.cache
def _authority() -> str:
    return certificate("apiserver").text


def plain_client(host: str, namespace: str = "crews", connections: int = 100) -> KubeClient:
    """Return a client of a server without TLS, with so many connections.

    It trusts one authority: to load the authorities of the machine takes longer than most tests.
    """
    configuration = client.Configuration(host=host, ca_cert_data=_authority())
    configuration.connection_pool_maxsize = connections
    return KubeClient(client.ApiClient(configuration), namespace)


@contextlib.asynccontextmanager
async def serving(routes: Iterable[web.RouteDef], connections: int = 100) -> AsyncIterator[KubeClient]:
    """Yield a client of the namespace `crews` of a server with these routes."""
    app = web.Application()
    app.add_routes(routes)
    async with TestServer(app) as server:
        host = str(server.make_url("")).rstrip("/")
        kube = plain_client(host, connections=connections)
        yield kube
        await kube.close()
