"""Service accounts with roles, and their tokens."""

import asyncio
from typing import Any

from crds.kinds import Kind
from kube.client import KubeClient

_RBAC = "rbac.authorization.k8s.io"
ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")
ROLE = Kind(_RBAC, "v1", "roles", "Role")
BINDING = Kind(_RBAC, "v1", "rolebindings", "RoleBinding")
RULES = {
    "read": ("runs", ["get"]),
    "run": ("runs", ["create"]),
    "deploy": ("deployments", ["create"]),
    "admin": ("projects", ["*"]),
}


async def account(kube: KubeClient, name: str, *scopes: str) -> None:
    """Create an account with exactly the permissions of these scopes."""
    rules = [
        {"apiGroups": ["crewyard.dev"], "resources": [RULES[scope][0]], "verbs": RULES[scope][1]}
        for scope in scopes
    ]
    await kube.create(ACCOUNT, {"metadata": {"name": name}})
    await kube.create(ROLE, {"metadata": {"name": name}, "rules": rules})
    await kube.create(
        BINDING,
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": kube.namespace}],
        },
    )
    # The apiserver's authorizer watches roles and applies them with a delay.
    async with asyncio.timeout(180):
        for scope in scopes:
            while not await _is_allowed(kube, name, *RULES[scope]):
                await asyncio.sleep(0.02)


async def _is_allowed(kube: KubeClient, name: str, resource: str, verbs: list[str]) -> bool:
    """Return whether the apiserver authorizes the account."""
    attributes = {
        "namespace": kube.namespace,
        "group": "crewyard.dev",
        "resource": resource,
        "verb": verbs[0],
    }
    spec = {"user": f"system:serviceaccount:{kube.namespace}:{name}", "resourceAttributes": attributes}
    review = await kube.call(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body={"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
    )
    return bool(review["status"]["allowed"])


async def token(kube: KubeClient, name: str, audience: str | None = "crewyard") -> str:
    """Return a token of the account; without an audience, one for the apiserver."""
    path = f"/api/v1/namespaces/{kube.namespace}/serviceaccounts/{name}/token"
    spec: dict[str, Any] = {"expirationSeconds": 600, "audiences": [audience] if audience else None}
    response = await kube.call(
        "POST",
        path,
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    return str(response["status"]["token"])
