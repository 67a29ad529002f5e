"""The working tree's admission policy in a test namespace, and the Pod Security profile *restricted*."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio import client

from kube import errors
from kube.client import KubeClient

FILE = Path(__file__).parents[3] / "manifests" / "base" / "admission.yaml"
GROUP = "/apis/admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
ACCOUNT = ("crewyard-system", "crewyard-controller")
TIMEOUT_SECONDS = 180


@dataclass(frozen=True)
class PodCreators:
    """Three clients that create pods: under Crewyard's policy, as the controller, and under *restricted*."""

    policy: KubeClient
    controller: KubeClient
    restricted: KubeClient


async def dry_run_error(kube: KubeClient, pod: dict[str, Any]) -> str:
    """Return the apiserver's error for a pod in a dry run, or an empty text."""
    path = f"/api/v1/namespaces/{kube.namespace}/pods"
    try:
        await kube.call("POST", path, {"dryRun": "All"}, {"apiVersion": "v1", "kind": "Pod", **pod})
    except (errors.KubeForbidden, errors.Invalid) as error:
        return str(error)
    return ""


def pod(**spec: Any) -> dict[str, Any]:
    """Return a pod that every policy accepts; `spec` overrides its spec."""
    container = {
        "name": "main",
        "image": "none.invalid/none:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "metadata": {"name": "asked"},
        "spec": {"containers": [container], "securityContext": security, **spec},
    }


async def _ready(kube: KubeClient) -> None:
    """Wait until the namespace has its service account."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while "serviceaccount" in await dry_run_error(kube, pod()):
            await asyncio.sleep(0.1)


async def account_client(
    kube: KubeClient, account: tuple[str, str], role: str, rules: Sequence[dict[str, Any]]
) -> KubeClient:
    """Return a client of a ServiceAccount, given as (namespace, name), with these rules."""
    namespace, name = account
    created = await kube.call(
        "POST",
        f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    collection = f"/apis/{RBAC}/v1/namespaces/{kube.namespace}"
    await kube.call("POST", f"{collection}/roles", body={"metadata": {"name": role}, "rules": [*rules]})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await kube.call("POST", f"{collection}/rolebindings", body=binding)
    configuration = kube._api.configuration
    settings = client.Configuration()
    settings.host, settings.ssl_ca_cert = configuration.host, configuration.ssl_ca_cert
    settings.api_key = {"authorization": created["status"]["token"]}
    settings.api_key_prefix = {"authorization": "Bearer"}
    return KubeClient(client.ApiClient(settings), kube.namespace)


@contextlib.asynccontextmanager
async def applied_policy(kube: KubeClient, file: Path, name: str) -> AsyncIterator[None]:
    """Apply the policy of a file under `name`, for the test namespace alone, while the context is open."""
    created = []
    try:
        for item in yaml.safe_load_all(file.read_text()):
            item["metadata"]["name"] = name
            if item["kind"].endswith("Binding"):
                item["spec"]["policyName"] = name
                here = {"kubernetes.io/metadata.name": kube.namespace}
                item["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] = here
            collection = f"{GROUP}/{PLURALS[item['kind']]}"
            await kube.call("POST", collection, body=item)
            created.append(f"{collection}/{name}")
        yield
    finally:
        for path in created:
            await kube.call("DELETE", path)


@pytest.fixture
async def creators(kube: KubeClient) -> AsyncIterator[PodCreators]:
    name = f"test-{secrets.token_hex(4)}"
    restricted = KubeClient(kube._api, name)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await kube.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name, "labels": labels}})
    controller = None
    try:
        async with applied_policy(kube, FILE, name):
            await _ready(kube)
            await _ready(restricted)
            # The controller's account may create pods in the test namespace.
            rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
            controller = await account_client(kube, ACCOUNT, "pods", [rule])
            refused = pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}})
            async with asyncio.timeout(TIMEOUT_SECONDS):
                # The apiserver applies a new policy, and its authorizer a new role, with a delay.
                while not await dry_run_error(kube, refused) or await dry_run_error(controller, pod()):
                    await asyncio.sleep(0.1)
            yield PodCreators(kube, controller, restricted)
    finally:
        if controller is not None:
            await controller.close()
        await kube.call("DELETE", f"/api/v1/namespaces/{name}")
