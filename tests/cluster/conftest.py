"""A client of the real cluster with one namespace per test."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator

import pytest
from kubernetes.aio import config as kubernetes_config

from controller.runtime import kopf_watch
from crds.kinds import Kind
from kube import errors
from kube.client import KubeClient
from tests.cluster import delays

if seed := os.environ.get(delays.VARIABLE):
    delays.delay_calls(KubeClient, int(seed))
    delays.delay_watch(KubeClient, int(seed))
    delays.delay_kopf(kopf_watch, int(seed))

NAMESPACE = Kind("", "v1", "namespaces", "Namespace")
ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")


async def _connect(namespace: str, field_manager: str | None = None) -> KubeClient:
    if not os.environ.get("KUBECONFIG"):
        pytest.fail('there is no cluster: run `make up` and `eval "$(make -s env)"` first')
    try:
        kube = await KubeClient.connect(namespace, field_manager)
        await kube.call("GET", "/version")
    except (kubernetes_config.ConfigException, errors.KubeError) as error:
        pytest.fail(f"the cluster does not answer; run `make up` first: {error}")
    return kube


async def _account(kube: KubeClient) -> None:
    """Wait for the namespace's default service account, which pods need."""
    async with asyncio.timeout(120):
        while await kube.get(ACCOUNT, "default") is None:
            await asyncio.sleep(0.02)


async def _create_namespace(connection: KubeClient) -> None:
    """Create the client's namespace with the pod security labels of `crews`."""
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": connection.namespace,
            "labels": {
                "pod-security.kubernetes.io/enforce": "baseline",
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    }
    await connection.call("POST", "/api/v1/namespaces", body=body)


@pytest.fixture
async def kube() -> AsyncIterator[KubeClient]:
    """A client bound to a new namespace with the pod security labels of `crews`."""
    name = f"test-{secrets.token_hex(4)}"
    connection = await _connect(name)
    await _create_namespace(connection)
    try:
        await _account(connection)
        yield connection
    finally:
        await connection.call("DELETE", f"/api/v1/namespaces/{name}")
        await connection.close()


@pytest.fixture
async def team(kube: KubeClient) -> AsyncIterator[KubeClient]:
    """A client bound to a second namespace, that of a team."""
    other = kube.at(f"{kube.namespace}-team")
    await _create_namespace(other)
    try:
        await _account(other)
        yield other
    finally:
        await other.call("DELETE", f"/api/v1/namespaces/{other.namespace}")
