"""What kubectl users may name: entrypoints that are code, and Secrets, as the API allows it to its users."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crds.kinds import PROJECT, RUN
from kube import errors
from kube.client import KubeClient
from tests.cluster.admission.conftest import account_client, applied_policy

FILE = Path(__file__).parents[3] / "manifests" / "base" / "users.yaml"
TIMEOUT_SECONDS = 180
OWN = {"apiGroups": ["crewyard.dev"], "resources": ["projects", "runs"], "verbs": ["create", "get", "patch"]}
GIT = {"url": "https://good.example/x.git", "suspend": True}


async def account(kube: KubeClient, name: str, *rules: dict[str, Any]) -> KubeClient:
    """Return a client of a new ServiceAccount that has these rules in the test namespace."""
    here = f"/api/v1/namespaces/{kube.namespace}/serviceaccounts"
    await kube.call("POST", here, body={"metadata": {"name": name}})
    return await account_client(kube, (kube.namespace, name), name, rules)


@pytest.fixture
async def clients(kube: KubeClient) -> AsyncIterator[tuple[KubeClient, KubeClient]]:
    """A user who may only write Projects and Runs, and one who may also deploy and read the Secret `mine`."""
    name = f"test-{secrets.token_hex(4)}"
    deploys = {"apiGroups": ["crewyard.dev"], "resources": ["deployments"], "verbs": ["create"]}
    reads = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]}
    weak, strong = await account(kube, "weak", OWN), await account(kube, "strong", OWN, deploys, reads)
    code = {"project": "p", "entrypoint": "os:environ.copy"}
    try:
        async with applied_policy(kube, FILE, name):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                # The apiserver applies a new policy, and its authorizer a new role, with a delay.
                while await refusal(weak, RUN, "run-0", code) != "code":
                    await asyncio.sleep(0.1)
                while await refusal(strong, RUN, "run-0", code):
                    await asyncio.sleep(0.1)
                while await refusal(strong, PROJECT, "p0", {"build": {"secretRef": {"name": "mine"}}}):
                    await asyncio.sleep(0.1)
            yield weak, strong
    finally:
        await weak.close()
        await strong.close()


async def refusal(kube: KubeClient, kind: Any, name: str, spec: dict[str, Any], method: str = "POST") -> str:
    """Return which rule refuses an object in a dry run: `code`, `Secret NAME`, the role's; empty if none."""
    body: dict[str, Any] = {"spec": spec}
    if method == "POST":
        body |= {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}
    path = kind.path(kube.namespace, None if method == "POST" else name)
    content = "application/json" if method == "POST" else "application/merge-patch+json"
    try:
        await kube.call(method, path, {"dryRun": "All"}, body, content)
    except errors.KubeForbidden as error:
        if "entrypoint: names code" in error.message:
            return "code"
        if "must be allowed to get it" in error.message:
            return "Secret " + error.message.split("someone who may get ")[1]
        return f"role: {error.message}"
    return ""


CODE = ["os:environ.copy", "main.py", "flow.yaml"]


@pytest.mark.parametrize("entrypoint", CODE)
async def test_an_entrypoint_that_is_code_needs_the_permission_to_deploy(clients, entrypoint):
    weak, strong = clients
    spec = {"project": "p", "entrypoint": entrypoint}
    assert await refusal(weak, RUN, "run-a", spec) == "code"
    assert await refusal(strong, RUN, "run-a", spec) == ""
    for allowed in ({"project": "p"}, {"project": "p", "entrypoint": "research"}):
        assert await refusal(weak, RUN, "run-a", allowed) == ""


REFERENCES = {
    "git": lambda name: {"source": {"git": {**GIT, "secretRef": {"name": name}}}},
    "verify": lambda name: {"source": {"git": {**GIT, "verify": {"secretRef": {"name": name}}}}},
    "build": lambda name: {"build": {"secretRef": {"name": name}}},
    "push": lambda name: {"build": {"push": {"secretRef": {"name": name}}}},
    "webhook": lambda name: {"webhook": {"secretRef": {"name": name}}},
    "github": lambda name: {"github": {"repository": "acme/crew", "secretRef": {"name": name}}},
    "pull": lambda name: {"pod": {"imagePullSecrets": [{"name": name}]}},
}


@pytest.mark.parametrize("field", REFERENCES)
async def test_a_secret_needs_the_permission_to_read_it(clients, field):
    weak, strong = clients
    assert await refusal(weak, PROJECT, "p", REFERENCES[field]("mine")) == "Secret mine"
    assert await refusal(strong, PROJECT, "p", REFERENCES[field]("mine")) == ""
    assert await refusal(strong, PROJECT, "p", REFERENCES[field]("others-env")) == "Secret others-env"
    assert await refusal(weak, PROJECT, "p", {}) == ""


async def test_what_was_named_stays_usable_but_goes_nowhere_else(kube, clients):
    weak, strong = clients
    spec = {
        "source": {"git": {**GIT, "secretRef": {"name": "mine"}}},
        "github": {"repository": "acme/crew", "secretRef": {"name": "mine"}},
    }
    await kube.create(PROJECT, {"metadata": {"name": "p"}, "spec": spec})
    for change in (
        {"run": {"timeout": "5m"}},
        {"source": {"git": {"interval": "5m"}}},
        {"github": None},
        {"source": {"git": {"secretRef": None, "url": "https://evil.example/x.git"}}},
    ):
        assert await refusal(weak, PROJECT, "p", change, "PATCH") == "", change
    for change in (
        {"source": {"git": {"url": "https://evil.example/x.git"}}},
        {"github": {"repository": "evil/crew"}},
        {"build": {"secretRef": {"name": "mine"}}},
    ):
        assert await refusal(weak, PROJECT, "p", change, "PATCH") == "Secret mine", change
        assert await refusal(strong, PROJECT, "p", change, "PATCH") == "", change


async def test_a_schedule_names_code_like_a_run(clients):
    weak, strong = clients
    for entrypoint, expected in (("research", ""), ("os:environ.copy", "code")):
        schedule = {"name": "a", "cron": "0 0 * * *", "entrypoint": entrypoint}
        assert await refusal(weak, PROJECT, "p", {"schedules": [schedule]}) == expected
        assert await refusal(strong, PROJECT, "p", {"schedules": [schedule]}) == ""


def secrets_everywhere(names: list[str], pulls: int, notifications: int) -> dict[str, Any]:
    """Return a spec that names a Secret in each field, in turn."""
    turn = iter(names * 30)
    return {
        "source": {
            "git": {
                **GIT,
                "secretRef": {"name": next(turn)},
                "verify": {"secretRef": {"name": next(turn)}},
            }
        },
        "build": {"secretRef": {"name": next(turn)}, "push": {"secretRef": {"name": next(turn)}}},
        "webhook": {"secretRef": {"name": next(turn)}},
        "github": {"repository": "acme/crew", "secretRef": {"name": next(turn)}},
        "pod": {"imagePullSecrets": [{"name": f"{next(turn)}{index or ''}"} for index in range(pulls)]},
        "notifications": [
            {
                "name": f"n{index}",
                "url": f"https://good.example/{index}",
                "secretRef": {"name": next(turn)},
                "events": ["run.failed"],
            }
            for index in range(notifications)
        ],
    }


async def test_many_secrets_at_once_stay_within_the_budget_of_the_policy(kube, clients):
    weak, strong = clients
    assert await refusal(strong, PROJECT, "p", secrets_everywhere(["mine"], 1, 2)) == ""
    assert "mine" in await refusal(weak, PROJECT, "p", secrets_everywhere(["mine"], 1, 2))
    # More than two pull secrets or notifications need the permission to read all Secrets.
    assert "mine" in await refusal(strong, PROJECT, "p", secrets_everywhere(["mine"], 1, 3))
    assert await refusal(kube, PROJECT, "p", secrets_everywhere(["a", "b", "c", "d", "e"], 16, 8)) == ""
