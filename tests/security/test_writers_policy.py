"""One writer per field, as the apiserver enforces it: the shipped policy, in a namespace of its own."""

import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.e2e.testbed import E2eTestbed, eventually
from tests.security.apiserver import ApiserverClient, ApiserverResponse

BASE = Path(__file__).parents[2] / "manifests/base"
API, CONTROLLER = (f"system:serviceaccount:crewyard-system:crewyard-{name}" for name in ("api", "controller"))
CLAIM = {"podUid": "u", "time": "2026-11-21T10:00:00Z"}
QUESTION = {
    "request": "q1",
    "prompt": "Which sea?",
    "time": "2026-11-21T10:00:00Z",
    "expirationTime": "2026-11-22T10:00:00Z",
}
RESULT = {"outcome": "succeeded", "durationMs": 1}


def shipped(file: str, kind: str) -> dict:
    """The object of a kind in one of the manifests."""
    return next(one for one in yaml.safe_load_all((BASE / file).read_text()) if one["kind"] == kind)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(testbed: E2eTestbed) -> AsyncIterator[str]:
    """A namespace in which the shipped roles and the shipped policy hold."""
    name = f"test-{secrets.token_hex(4)}"
    labels = {"name": name, "labels": {"crewyard.dev/test": name}}
    policies = list(yaml.safe_load_all((BASE / "writers.yaml").read_text()))
    for one in policies:
        one["metadata"]["name"] += f"-{name}"
        if one["kind"] == "ValidatingAdmissionPolicyBinding":
            one["spec"]["policyName"] = one["metadata"]["name"]
            one["spec"]["matchResources"] = {
                "namespaceSelector": {"matchLabels": {"crewyard.dev/test": name}}
            }
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": labels}, *policies]
    for file in ("api-rbac.yaml", "controller-rbac.yaml"):
        for kind in ("Role", "RoleBinding"):
            one = shipped(file, kind)
            one["metadata"]["namespace"] = name
            made.append(one)
    try:
        whole = {"apiVersion": "v1", "kind": "List", "items": made}
        await testbed.kubectl("-n", name, "create", "-f", "-", stdin=json.dumps(whole))
        yield name
    finally:
        for one in policies:
            await testbed.kubectl("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found")
        await testbed.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest_asyncio.fixture(loop_scope="session")
async def run(testbed: E2eTestbed, apiserver: ApiserverClient, place: str) -> str:
    """A Run in that namespace, once the policy holds."""
    body = {
        "apiVersion": "crewyard.dev/v1alpha1",
        "kind": "Run",
        "metadata": {"name": f"run-{secrets.token_hex(4)}"},
        "spec": {"project": "demo"},
    }
    await testbed.kubectl("-n", place, "create", "-f", "-", stdin=json.dumps(body))
    name = body["metadata"]["name"]
    forged = {"status": {"durationMs": 7}}
    await eventually(
        lambda: patch(apiserver, place, name, API, forged),
        lambda answer: "only claim, result and inputRequests" in answer.text,
        180,
    )
    return name


async def patch(
    apiserver: ApiserverClient, place: str, name: str, user: str, body: dict, part: str = "status"
) -> ApiserverResponse:
    """What the apiserver says to a patch that is not meant to stay."""
    path = f"/apis/crewyard.dev/v1alpha1/namespaces/{place}/runs/{name}{'/' if part else ''}{part}?dryRun=All"
    return await apiserver.call("PATCH", path, body, user=user)


FOREIGN = [
    (API, "status", {"phase": "Succeeded"}),
    (API, "status", {"conditions": []}),
    (API, "status", {"project": "other"}),
    (API, "status", {"deployment": "dep-x"}),
    (API, "status", {"error": {"reason": "CrewError", "message": "x"}}),
    (API, "status", {"pod": {"name": "x", "uid": "y"}}),
    (API, "status", {"startTime": "2026-11-21T10:00:00Z"}),
    (API, "status", {"completionTime": "2026-11-21T10:00:00Z"}),
    (API, "status", {"observedGeneration": 9}),
    (API, "status", {"claim": CLAIM, "durationMs": 5}),
    (CONTROLLER, "status", {"claim": CLAIM}),
    (CONTROLLER, "status", {"result": RESULT}),
    (CONTROLLER, "status", {"phase": "Running", "result": RESULT}),
    (CONTROLLER, "status", {"inputRequests": [QUESTION]}),
    (CONTROLLER, "", {"deployment": "dep-x"}),
    (CONTROLLER, "", {"deployment": "dep-x", "cancel": True}),
]
OWN = [
    (API, "status", {"claim": CLAIM}),
    (API, "status", {"result": RESULT}),
    (API, "status", {"inputRequests": [QUESTION]}),
    (CONTROLLER, "status", {"inputRequests": []}),
    (API, "", {"cancel": True}),
    (CONTROLLER, "", {"cancel": True}),
    (CONTROLLER, "status", {"phase": "Running"}),
    (CONTROLLER, "status", {"pod": {"name": "x", "uid": "y"}}),
]


async def test_foreign_status_field_is_denied(apiserver, place, run):
    for user, part, fields in FOREIGN:
        answer = await patch(apiserver, place, run, user, {part or "spec": fields}, part)
        assert (answer.status, "denied request" in answer.text) == (403, True), (user, fields, answer)


async def test_own_status_field_is_allowed(apiserver, place, run):
    for user, part, fields in OWN:
        answer = await patch(apiserver, place, run, user, {part or "spec": fields}, part)
        assert answer.status == 200, (user, fields, answer)
    answer = await patch(apiserver, place, run, CONTROLLER, {"metadata": {"labels": {"a": "b"}}}, "")
    assert answer.status == 200, answer


def egress_policy(name: str, **spec) -> dict:
    """A NetworkPolicy as the controller makes it, with changes."""
    labels = {"app.kubernetes.io/component": "run", "crewyard.dev/project": "demo"}
    whole = {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": [{}], **spec}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": whole,
    }


async def test_controller_writes_network_policies_of_runs_alone(apiserver, testbed, place, run):
    path = f"/apis/networking.k8s.io/v1/namespaces/{place}/networkpolicies"

    async def post(body: dict, query: str = "?dryRun=All") -> ApiserverResponse:
        return await apiserver.call("POST", path + query, body, user=CONTROLLER)

    denied = egress_policy("crewyard-egress-demo", podSelector={})
    await eventually(lambda: post(denied), lambda answer: "denied request" in answer.text, 180)
    everyone = {"matchLabels": {"app.kubernetes.io/component": "run"}}
    for body in (
        egress_policy("crewyard-closed"),
        egress_policy("crewyard-egress-demo", podSelector=everyone),
        egress_policy("crewyard-egress-demo", policyTypes=["Ingress"]),
        egress_policy("crewyard-egress-demo", policyTypes=["Ingress", "Egress"]),
    ):
        answer = await post(body)
        assert (answer.status, "denied request" in answer.text) == (403, True), (body, answer)
    assert (await post(egress_policy("crewyard-egress-demo"), "")).status == 201
    closed = egress_policy("crewyard-closed", podSelector={})
    await testbed.kubectl("-n", place, "create", "-f", "-", stdin=json.dumps(closed))
    for name, status in (("crewyard-closed", 403), ("crewyard-egress-demo", 200)):
        answer = await apiserver.call("DELETE", f"{path}/{name}", user=CONTROLLER)
        assert answer.status == status, (name, answer)


def pod(name: str, **labels: str) -> dict:
    """A pod that no node takes."""
    container = {"name": "crew", "image": "registry.invalid/crews/demo:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/component": "run", **labels}},
        "spec": {"containers": [container], "nodeSelector": {"crewyard.dev/none": "here"}},
    }


BINDING = {
    "metadata": {"labels": {"crewyard.dev/run": "run-a"}, "annotations": {"crewyard.dev/bound-at": "now"}},
    "spec": {"activeDeadlineSeconds": 60},
}


BUILD_BINDING = {
    "metadata": {"labels": {"crewyard.dev/deployment": "dep-a"}, "annotations": {"crewyard.dev/build": "{}"}},
    "spec": {"activeDeadlineSeconds": 60},
}


TOLERATION = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]


@pytest.mark.parametrize(
    ("labels", "body", "status"),
    [
        ({"crewyard.dev/warm": "a"}, BINDING, 200),
        ({"crewyard.dev/warm": "a", "crewyard.dev/run": "run-b"}, BINDING, 403),
        ({"crewyard.dev/run": "run-b"}, {"spec": {"activeDeadlineSeconds": 60}}, 403),
        ({}, {"metadata": {"annotations": {"a": "b"}}}, 403),
        ({"crewyard.dev/warm": "a"}, {"metadata": {"labels": {"crewyard.dev/warm": "b"}}}, 403),
        ({"crewyard.dev/warm": "a"}, {"metadata": {"labels": {"crewyard.dev/warm": None}}}, 403),
        ({"crewyard.dev/warm": "a"}, {"metadata": {"labels": {"a": "b"}}}, 403),
        ({"crewyard.dev/warm-builder": "a"}, BUILD_BINDING, 200),
        ({"crewyard.dev/warm-builder": "a", "crewyard.dev/deployment": "dep-b"}, BUILD_BINDING, 403),
        ({"crewyard.dev/warm-builder": "a"}, BINDING, 403),
        ({"crewyard.dev/warm": "a"}, BUILD_BINDING, 403),
        ({"crewyard.dev/warm": "a"}, {"spec": {"containers": [{"name": "crew", "image": "other"}]}}, 403),
        ({"crewyard.dev/warm": "a"}, TOLERATION, 403),
    ],
)
async def test_controller_changes_only_waiting_pods(apiserver, testbed, place, run, labels, body, status):
    name = f"pod-{secrets.token_hex(4)}"
    await testbed.kubectl("-n", place, "create", "-f", "-", stdin=json.dumps(pod(name, **labels)))
    path = f"/api/v1/namespaces/{place}/pods/{name}?dryRun=All"
    other = {"metadata": {"labels": {"a": "b"}}}
    # Each policy of the file holds at a time of its own.
    await eventually(
        lambda: apiserver.call("PATCH", path, other, user=CONTROLLER),
        lambda answer: answer.status == 403,
        180,
    )
    kind = "json-patch" if body is TOLERATION else "strategic-merge-patch"
    headers = {"Content-Type": f"application/{kind}+json"}
    answer = await apiserver.call("PATCH", path, body, user=CONTROLLER, headers=headers)
    assert answer.status == status, answer
    assert status == 200 or "denied request" in answer.text


def test_policy_names_every_status_field():
    schema = yaml.safe_load((BASE.parents[1] / "crds/run.yaml").read_text())["spec"]["versions"][0]["schema"]
    fields = schema["openAPIV3Schema"]["properties"]["status"]["properties"]
    rules = json.dumps(shipped("writers.yaml", "ValidatingAdmissionPolicy")["spec"]["validations"])
    assert [
        name for name in fields if f"object.?status.?{name} == oldObject.?status.?{name}" not in rules
    ] == []
