"""Webhooks against a real apiserver: a signed delivery has one effect, an unsigned one has none."""

import hashlib
import hmac
import json
import random

import pytest

from crds.kinds import DEPLOYMENT, PROJECT, SECRET
from crds.names import ANNOTATION_PUSHED_AT
from crds.objects import Deployment

SECRET_TEXT = "a secret of the webhook"
URL = "https://git.example.com/team/crew.git"
PUSH = {"ref": "refs/heads/main", "repository": {"full_name": "team/crew", "default_branch": "main"}}


def signed(
    body: bytes, secret: str = SECRET_TEXT, event: str = "push", delivery: str = "1"
) -> dict[str, str]:
    """Return the headers of a GitHub delivery."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={digest}",
    }


@pytest.fixture
async def hook_testbed(testbed):
    """The project crew with a webhook, and projects without a usable one."""
    await testbed.kube.create(
        SECRET, {"metadata": {"name": "hook"}, "stringData": {"token": f"{SECRET_TEXT}\n"}}
    )
    await testbed.kube.create(SECRET, {"metadata": {"name": "empty"}, "stringData": {"token": ""}})
    git = {"url": URL}
    for name, hook in (("crew", "hook"), ("bare", None), ("empty", "empty"), ("lost", "nowhere")):
        webhook = {"webhook": {"secret_ref": {"name": hook}}} if hook else {}
        await testbed.data("POST", "/v1/projects", {"name": name, "source": {"git": git}, **webhook})
    return testbed


async def deliver(testbed, body, headers, project="crew"):
    path = f"/v1/hooks/git/{project}"
    # Deliveries need no API key.
    return await testbed.call("POST", path, data=body, headers={"Authorization": "", **headers})


async def pushed_at(testbed, project="crew"):
    found = await testbed.kube.get(PROJECT, project)
    return (found["metadata"].get("annotations") or {}).get(ANNOTATION_PUSHED_AT)


async def test_push_requests_one_poll_and_changes_nothing_else(hook_testbed):
    body = json.dumps(PUSH).encode()
    before = await hook_testbed.kube.get(PROJECT, "crew")
    status, found, headers = await deliver(hook_testbed, body, signed(body))
    assert (status, found["data"]["effect"]) == (202, "look") and headers["X-RateLimit-Limit"]
    first = await pushed_at(hook_testbed)
    assert first
    after = await hook_testbed.kube.get(PROJECT, "crew")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    # A redelivery by the host, and a replay under another id (ids are not signed).
    for delivery in ("1", "2"):
        status, found, _ = await deliver(hook_testbed, body, signed(body, delivery=delivery))
        assert (status, found["data"]["effect"]) == (202, "none")
    assert await pushed_at(hook_testbed) == first
    other = json.dumps({**PUSH, "after": "b" * 40}).encode()
    assert (await deliver(hook_testbed, other, signed(other, delivery="3")))[0] == 202
    assert await pushed_at(hook_testbed) > first


async def test_unsigned_deliveries_get_identical_refusals(hook_testbed):
    body, responses = json.dumps(PUSH).encode(), set()
    for project, headers in (
        ("crew", signed(body, "another")),
        ("crew", {"Content-Type": "application/json", "X-GitHub-Event": "push"}),
        ("crew", {**signed(body), "X-Gitlab-Token": "another"}),
        ("bare", signed(body)),
        ("bare", signed(body, "")),
        ("empty", signed(body, "")),
        ("lost", signed(body, "")),
        ("unknown", signed(body)),
        ("NoName", signed(body)),
    ):
        status, found, _ = await deliver(hook_testbed, body, headers, project)
        assert status == 404, (project, headers)
        responses.add(json.dumps(found))
    assert len(responses) == 1
    for project in ("crew", "bare", "empty", "lost"):
        assert await pushed_at(hook_testbed, project) is None


async def test_tampered_deliveries_have_no_effect(hook_testbed):
    draw, body = random.Random(4), json.dumps(PUSH).encode()
    for _ in range(300):
        headers, sent = signed(body), bytearray(body)
        if draw.random() < 0.5:
            sent[draw.randrange(len(sent))] ^= 1 << draw.randrange(7)
        else:
            at = draw.randrange(7, 71)
            text = headers["X-Hub-Signature-256"]
            other = draw.choice([letter for letter in "0123456789abcdef" if letter != text[at]])
            headers["X-Hub-Signature-256"] = text[:at] + other + text[at + 1 :]
        assert (await deliver(hook_testbed, bytes(sent), headers))[0] == 404
    assert await pushed_at(hook_testbed) is None


async def test_pings_other_branches_and_content_types(hook_testbed):
    body = json.dumps({"zen": "Keep it simple.", "repository": PUSH["repository"]}).encode()
    assert (await deliver(hook_testbed, body, signed(body, event="ping")))[0] == 200
    body = json.dumps({**PUSH, "ref": "refs/heads/next"}).encode()
    status, found, _ = await deliver(hook_testbed, body, signed(body))
    assert (status, found["data"]["effect"]) == (202, "none")
    assert "refs/heads/main" in found["data"]["reason"]
    status, _, _ = await deliver(hook_testbed, body, {**signed(body), "Content-Type": "text/plain"})
    assert status == 415
    status, _, _ = await deliver(hook_testbed, b"{", signed(b"{"))
    assert status == 400
    assert await pushed_at(hook_testbed) is None
    gitlab = {
        "Content-Type": "application/json",
        "X-Gitlab-Event": "Push Hook",
        "X-Gitlab-Token": SECRET_TEXT,
    }
    payload = json.dumps({"ref": "refs/heads/main", "project": {"path_with_namespace": "team/crew"}}).encode()
    assert (await deliver(hook_testbed, payload, {**gitlab, "X-Gitlab-Event-UUID": "u"}))[1]["data"][
        "effect"
    ] == "look"


async def test_large_push_is_not_parsed_larger_is_refused(hook_testbed):
    large = json.dumps({**PUSH, "ref": "refs/heads/next", "commits": ["x" * 100] * 20_000}).encode()
    status, found, _ = await deliver(hook_testbed, large, signed(large))
    assert (status, found["data"]["effect"]) == (202, "look")
    status, _, _ = await deliver(hook_testbed, b"x", {**signed(b"x"), "Content-Length": str(30 << 20)})
    assert status == 413


@pytest.mark.parametrize("project", ["crew", "uploads"])
async def test_closed_pull_request_marks_only_its_previews(hook_testbed, project):
    uploads = {"name": "uploads", "webhook": {"secret_ref": {"name": "hook"}}}
    await hook_testbed.data("POST", "/v1/projects", uploads)
    source = {"git": {"url": URL, "commit": "a" * 40}}
    if project == "uploads":
        source = {"archive": {"upload": "upl_a"}}
    for name, preview in (("dep-a", {"pullRequest": 7}), ("dep-b", {"pullRequest": 8}), ("dep-c", None)):
        spec = {"project": project, "source": source, **({"preview": preview} if preview else {})}
        made = await hook_testbed.kube.create(DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})
        await hook_testbed.store.deployments.observe(Deployment(made))
    payload = {"action": "closed", "number": 7, "repository": PUSH["repository"]}
    body = json.dumps(payload).encode()
    status, found, _ = await deliver(hook_testbed, body, signed(body, event="pull_request"), project)
    assert (status, found["data"]["effect"]) == (202, "close")
    marked = [
        item["metadata"]["name"]
        for item in (await hook_testbed.kube.list(DEPLOYMENT)).items
        if "crewyard.dev/closed" in (item["metadata"].get("annotations") or {})
    ]
    assert marked == ["dep-a"]


@pytest.mark.usefixtures("stopped_windows")
async def test_deliveries_of_one_project_at_its_limit_and_of_another(hook_testbed, monkeypatch):
    monkeypatch.setattr("api.webhooks.routes.DELIVERIES_PER_MINUTE", 2)
    other = {"name": "other", "source": {"git": {"url": URL}}, "webhook": {"secret_ref": {"name": "hook"}}}
    await hook_testbed.data("POST", "/v1/projects", other)

    async def push(project, number):
        body = json.dumps({**PUSH, "after": f"{number:040x}"}).encode()
        return await deliver(hook_testbed, body, signed(body, delivery=f"{project}-{number}"), project)

    assert [(await push("crew", number))[0] for number in range(2)] == [202, 202]
    status, found, headers = await push("crew", 2)
    assert (status, found["error"]["code"]) == (429, "rate_limited") and headers["Retry-After"]
    assert (await push("other", 3))[1]["data"]["effect"] == "look"
    _, metrics, _ = await hook_testbed.call("GET", "/metrics")
    assert b'crewyard_limit_reached_total{limit="deliveries_per_minute"} 1.0' in metrics
