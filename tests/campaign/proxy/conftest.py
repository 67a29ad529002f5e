"""A namespace, and a connection to it through a proxy."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from kubernetes.aio import client, config

from kube.client import KubeClient
from tests.campaign.proxy.server import ApiserverProxy, apiserver_proxy
from tests.cluster.conftest import kube

__all__ = ["kube"]


@dataclass
class ProxiedClients:
    """`kube` leads through the proxy, `direct` past it."""

    proxy: ApiserverProxy
    kube: KubeClient
    direct: KubeClient


@pytest.fixture
async def proxied(tmp_path, kube) -> AsyncIterator[ProxiedClients]:
    async with apiserver_proxy(tmp_path) as proxy:
        settings = client.Configuration()
        await config.load_kube_config(config_file=str(proxy.kubeconfig), client_configuration=settings)
        behind = KubeClient(client.ApiClient(settings), kube.namespace)
        yield ProxiedClients(proxy, behind, kube)
        await behind.close()
