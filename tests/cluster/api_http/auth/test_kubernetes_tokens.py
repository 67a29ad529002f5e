"""Kubernetes service account tokens: their scopes follow from the cluster's RBAC."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from kubernetes.aio import client as kubernetes

from api import errors
from api.auth import revocation
from api.auth.kubernetes import KubernetesTokens
from api.auth.unverified import parse_unverified
from api.services import SERVICES
from crds.kinds import RUN
from kube.client import KubeClient
from tests.cluster.api_http.auth.accounts import ACCOUNT, BINDING, account, token

CLUSTER = "/apis/rbac.authorization.k8s.io/v1"


async def scopes(tokens, text):
    found = await tokens.caller(text, parse_unverified(text), datetime.now(UTC))
    return None if found is None else set(found.grants.everywhere or ())


def kubernetes_tokens(testbed):
    return testbed.client.server.app[SERVICES].tokens._kubernetes


@pytest.mark.parametrize("scope", ["read", "run", "deploy", "admin"])
async def test_scopes_follow_cluster_rbac(kube, scope):
    await account(kube, "ci", scope)
    assert await scopes(KubernetesTokens(kube, "crewyard"), await token(kube, "ci")) == {scope}


async def test_only_valid_tokens_of_our_audience_are_accepted(kube):
    await account(kube, "ci", "read")
    tokens = KubernetesTokens(kube, "crewyard")
    good = await token(kube, "ci")
    assert await scopes(tokens, await token(kube, "ci", "other")) is None
    assert await scopes(tokens, await token(kube, "ci", None)) is None
    assert await scopes(tokens, good[:-6] + "AAAAAA") is None
    late = datetime.now(UTC) + timedelta(seconds=601)
    assert await tokens.caller(good, parse_unverified(good), late) is None
    assert await scopes(tokens, good) == {"read"}
    assert await scopes(KubernetesTokens(kube, "elsewhere"), good) is None


async def test_token_review_is_cached_for_ten_seconds(kube, monkeypatch):
    await account(kube, "ci", "run", "read")
    good = await token(kube, "ci")
    requests, original_call = [], kube.call

    async def call(method, path, *more, **named):
        requests.append(path)
        return await original_call(method, path, *more, **named)

    monkeypatch.setattr(kube, "call", call)
    tokens = KubernetesTokens(kube, "crewyard")
    # The cache clock stands still, so a slow machine does not matter.
    monkeypatch.setattr(tokens._cache, "_clock", lambda: 0.0)
    bad = good[:-6] + "AAAAAA"
    for text in (good, bad):
        await asyncio.gather(*(scopes(tokens, text) for _ in range(20)))
        assert await scopes(tokens, text) == ({"read", "run"} if text is good else None)
    assert len(requests) == 1 + 4 + 1


async def test_shipped_role_allows_token_reviews(kube):
    """The manifest's rules alone permit token reviews."""
    path = Path(__file__).parents[4] / "manifests/base/api-rbac.yaml"
    shipped = next(one for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "ClusterRole")
    name = f"test-{secrets.token_hex(4)}"
    await account(kube, "api-server")
    await account(kube, "ci", "deploy")
    role = {**shipped, "metadata": {"name": name}}
    binding = {
        "apiVersion": shipped["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "api-server", "namespace": kube.namespace}],
    }
    settings = kubernetes.Configuration()
    settings.host, settings.ssl_ca_cert = kube._api.configuration.host, kube._api.configuration.ssl_ca_cert
    settings.api_key = {"authorization": await token(kube, "api-server", None)}
    settings.api_key_prefix = {"authorization": "Bearer"}
    api_client = KubeClient(kubernetes.ApiClient(settings), kube.namespace)
    good = await token(kube, "ci")
    try:
        with pytest.raises(errors.HttpApiError) as refused:
            await scopes(KubernetesTokens(api_client, "crewyard"), good)
        assert refused.value.status == 503, "without the role it is an outage, not a bad token"
        await kube.call("POST", f"{CLUSTER}/clusterroles", body=role)
        await kube.call("POST", f"{CLUSTER}/clusterrolebindings", body=binding)
        async with asyncio.timeout(180):
            while True:  # The apiserver applies the role with a delay.
                try:
                    assert await scopes(KubernetesTokens(api_client, "crewyard"), good) == {"deploy"}
                    break
                except errors.HttpApiError:
                    await asyncio.sleep(0.1)
    finally:
        for plural in ("clusterrolebindings", "clusterroles"):
            await _delete_if_present(kube, f"{CLUSTER}/{plural}/{name}")
        await api_client.close()


async def _delete_if_present(kube, path):
    try:
        await kube.call("DELETE", path)
    except Exception as error:
        assert "not found" in str(error), error


async def test_silent_apiserver_is_503_in_time(kube, monkeypatch):
    await account(kube, "ci", "read")
    good = await token(kube, "ci")

    async def never_respond(*_, **__):
        await asyncio.sleep(60)

    monkeypatch.setattr("api.auth.kubernetes.REVIEW_TIMEOUT_SECONDS", 0.1)
    tokens = KubernetesTokens(kube, "crewyard")
    # The apiserver responds again before the namespace is deleted.
    with monkeypatch.context() as away, pytest.raises(errors.HttpApiError) as refused:
        away.setattr(kube, "call", never_respond)
        await scopes(tokens, good)
    assert refused.value.status == 503


async def test_stream_ends_when_read_access_is_revoked(testbed, monkeypatch):
    monkeypatch.setattr(revocation, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(kubernetes_tokens(testbed)._cache, "_seconds", 0.2)
    await testbed.call("POST", "/v1/projects", {"name": "crew"})
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "crew"}})
    await account(testbed.kube, "ci", "read")
    headers = {"Authorization": f"Bearer {await token(testbed.kube, 'ci')}", "Accept": "text/event-stream"}
    # The apiserver caches token reviews for ten seconds.
    async with asyncio.timeout(120):
        while (await testbed.call("GET", "/v1/runs/run_a"))[0] != 200:
            await asyncio.sleep(0.05)
        async with testbed.client.get("/v1/runs/run_a/events", headers=headers) as stream:
            assert stream.status == 200
            await stream.content.readuntil(b"\n\n")
            await testbed.kube.delete(BINDING, "ci")
            assert b"run." not in await stream.content.read()
        status, answer, _ = await testbed.call("GET", "/v1/runs/run_a", headers=headers)
        assert (status, answer["error"]["details"]) == (403, {"required_scope": "read", "scopes": []})
        await testbed.kube.delete(ACCOUNT, "ci")
        while (await testbed.call("GET", "/v1/runs/run_a", headers=headers))[0] != 401:
            await asyncio.sleep(0.1)


@pytest.mark.usefixtures("stopped_windows")
async def test_malformed_tokens_never_reach_the_apiserver(testbed, monkeypatch):
    await account(testbed.kube, "ci", "read")
    good, other = await token(testbed.kube, "ci"), await token(testbed.kube, "ci", "other")
    requests, original_call = [], testbed.kube.call

    async def call(method, path, *more, **named):
        if path.endswith("tokenreviews"):
            requests.append(path)
        return await original_call(method, path, *more, **named)

    async def status(text):
        return (await testbed.call("GET", "/v1/runs", headers={"Authorization": f"Bearer {text}"}))[0]

    monkeypatch.setattr(testbed.kube, "call", call)
    for text in ("x" * 500, f"{good}.x", good[:-310], other, good.replace(".", ".e", 1)):
        assert await status(text) == 401
    assert requests == []
    # After too many bad tokens an address is refused for a minute; valid tokens still work.
    assert await status(good) == 200
    codes = [await status(f"{good[:-8]}{number:08d}") for number in range(60)]
    assert codes == [401] * 55 + [429] * 5
    assert len(requests) == 1 + 55
    # A valid token is reviewed again after its cache entry expires; others cannot lock it out.
    monkeypatch.setattr(kubernetes_tokens(testbed)._cache, "_seconds", 0.0)
    assert await status(good) == 200
    assert len(requests) == 1 + 55 + 1
