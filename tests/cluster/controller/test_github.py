"""Reports to GitHub: real controller and apiserver, and a stub of GitHub's API."""

import asyncio
import base64
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.github import reconcile
from controller.github.pauses import RequestPauses
from controller.runtime import event_map
from crds import kinds
from crds.names import ANNOTATION_CLOSED, ANNOTATION_GITHUB
from tests.cluster.controller.conftest import WAIT_SECONDS, ControllerTestbed, controller, settings, settle
from tests.testbed.github_server import APP, INSTALLATION, LOGIN, REPOSITORY, TOKEN, github_server

SHA, OTHER = "a" * 40, "b" * 40


def commit(sha):
    return {"git": {"url": f"https://github.com/{REPOSITORY}.git", "commit": sha}}


@pytest.fixture
async def github():
    async with github_server() as server:
        yield server


@pytest.fixture
async def testbed(kube, github, monkeypatch):
    monkeypatch.setattr(reconcile, "REFUSED_RETRY_SECONDS", 0.3)
    monkeypatch.setattr(reconcile, "BACKOFF_FACTOR", 0.5)
    monkeypatch.setattr(reconcile, "PULL_REQUEST_POLL_SECONDS", 0.3)
    config = settings(kube.namespace, github_url=github.url, public_url="https://crews.example.org")
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def secret(testbed, **data):
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    body = {"metadata": {"name": "github"}, "data": encoded}
    if await testbed.kube.get(kinds.SECRET, "github"):
        await testbed.kube.patch(kinds.SECRET, "github", {"data": encoded})
    else:
        await testbed.kube.create(kinds.SECRET, body)


async def project(testbed, **github):
    return await testbed.project(github={"repository": REPOSITORY, "secretRef": {"name": "github"}, **github})


async def until(holds, seconds=WAIT_SECONDS):
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


async def wait_reported(testbed, name, state):
    return await testbed.until(
        kinds.DEPLOYMENT,
        name,
        lambda o: (o["metadata"].get("annotations") or {}).get(ANNOTATION_GITHUB, "").startswith(state),
    )


async def test_deployment_is_reported_from_start_to_end(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await wait_reported(testbed, "dep-a", "success")
    assert github.states(SHA)[-1] == "success"
    assert set(github.states(SHA)) <= {"pending", "success"}
    last = github.statuses[-1]
    assert last["context"] == "crewyard/demo"
    assert last["target_url"] == "https://crews.example.org/console/#/deployments/dep_a"
    (made,) = github.deployments
    assert (made["environment"], made["auto_merge"], made["required_contexts"]) == ("demo", False, [])
    assert made["states"][-1] == "success"

    await testbed.deployment("dep-b", source=commit(OTHER))
    await testbed.wait_active("dep-b")
    await wait_reported(testbed, "dep-b", "success")
    await wait_reported(testbed, "dep-a", "inactive")
    assert github.states(SHA)[-1] == "success"
    assert made["states"][-1] == "inactive"

    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-a", {"spec": {"activation": 1}})
    await wait_reported(testbed, "dep-a", "success")
    assert made["states"][-1] == "success"
    assert len(github.deployments) == 2


async def test_failure_is_reported_with_its_reason(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    body = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}, "gitSha": SHA}
    await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": body})
    error = {"reason": "DependencyResolution", "message": "no version of nothing fits"}
    await testbed.kube.patch(
        kinds.DEPLOYMENT, "dep-a", {"status": {"phase": "Failed", "error": error}}, "status"
    )
    await wait_reported(testbed, "dep-a", "failure")
    assert github.states(SHA)[-1] == "failure"
    assert github.statuses[-1]["description"] == "DependencyResolution: no version of nothing fits"
    assert github.deployments[0]["states"][-1] == "failure"


async def test_app_uses_an_installation_token(testbed, github):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    github.public_key = public.decode()
    await secret(
        testbed, githubAppID=APP, githubAppInstallationID=INSTALLATION, githubAppPrivateKey=pem.decode()
    )
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await wait_reported(testbed, "dep-a", "success")
    assert github.tokens_issued == 1


async def test_github_outage_only_delays_reports(testbed, github):
    await secret(testbed, token=TOKEN)
    github.failures = [502] * 6
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await wait_reported(testbed, "dep-a", "success")
    assert len(github.deployments) == 1


async def not_told_events(testbed):
    return [e for e in (await testbed.kube.list(kinds.EVENT)).items if e["reason"] == "GitHubNotTold"]


async def test_wrong_token_is_reported_once_and_retried(testbed, github):
    await secret(testbed, token="wrong")
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await until(lambda: github.request_count > 4)
    async with asyncio.timeout(WAIT_SECONDS):
        # Events are written in the background.
        while not (events := await not_told_events(testbed)):
            await asyncio.sleep(0.05)
    assert len(events) == 1
    assert "401" in events[0]["message"]
    assert "spec.github.secretRef" in events[0]["message"]
    await secret(testbed, token=TOKEN)
    await wait_reported(testbed, "dep-a", "success")


async def test_nothing_is_reported_twice_after_a_restart(testbed, kube, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await wait_reported(testbed, "dep-a", "success")
    before = (len(github.statuses), len(github.deployments))
    async with controller(kube, replace(testbed.config, kopf=False)) as second:
        await settle(second)
    assert (len(github.statuses), len(github.deployments)) == before


async def test_preview_closes_with_its_pull_request(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA), preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-a", "success")
    assert github.deployments[0]["environment"] == "demo/pull-7"
    await asyncio.sleep(0.5)
    found = await testbed.kube.get(kinds.DEPLOYMENT, "dep-a")
    assert ANNOTATION_CLOSED not in found["metadata"]["annotations"]
    github.closed.add(7)
    await testbed.until(
        kinds.DEPLOYMENT, "dep-a", lambda o: ANNOTATION_CLOSED in (o["metadata"].get("annotations") or {})
    )
    await until(lambda: github.deployments[0]["states"][-1] == "inactive")


async def test_pull_request_has_one_comment_of_the_newest_preview(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed, comment=True)
    for number in range(120):
        github.add_comment(7, "reader", f"comment {number}")
    github.add_comment(7, "reader", "<!-- crewyard/demo 9999-01-01T00:00:00Z dep-x -->\nnot ours")
    await testbed.deployment("dep-a", gitSha=SHA, preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-a", "success")
    own = [c for c in github.comments if c["login"] == LOGIN]
    assert [c["number"] for c in own] == [7]
    assert "the preview of `demo` at aaaaaaaaaaaa (uploaded) is built" in own[0]["body"]
    assert "crewyard run dep_a " in own[0]["body"]
    assert "https://crews.example.org/console/#/deployments/dep_a" in own[0]["body"]
    await testbed.deployment("dep-b", gitSha=OTHER, preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-b", "success")
    assert "at bbbbbbbbbbbb (uploaded) is built" in own[0]["body"]
    assert len([c for c in github.comments if c["login"] == LOGIN]) == 1
    assert github.comments[120]["body"].endswith("not ours")


async def test_refused_comment_does_not_stop_the_report(testbed, github):
    await secret(testbed, token=TOKEN)
    github.missing_permissions = {"comments"}
    await project(testbed, comment=True)
    await testbed.deployment("dep-a", gitSha=SHA, preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-a", "success")
    assert github.deployments[0]["states"][-1] == "success"
    async with asyncio.timeout(WAIT_SECONDS):
        while not (events := await not_told_events(testbed)):
            await asyncio.sleep(0.05)
    assert "pull requests" in events[0]["message"]
    assert github.comments == []


async def test_pull_request_polls_back_off_during_outage(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA), preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-a", "success")
    github.failures = [502] * 1000
    before = github.request_count
    await asyncio.sleep(1.5)
    assert github.request_count - before < 15
    # Polling continues; a busy machine may need longer for the second poll.
    await until(lambda: github.request_count - before > 1)


async def test_preview_closed_by_webhook_is_inactive_on_github(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA), preview={"pullRequest": 7})
    await wait_reported(testbed, "dep-a", "success")
    closed = {"metadata": {"annotations": {ANNOTATION_CLOSED: "pull request 7"}}}
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-a", closed)
    await until(lambda: github.deployments[0]["states"][-1] == "inactive")
    assert github.states(SHA)[-1] == "success"


async def test_commit_status_is_posted_once_despite_refusals(testbed, github):
    await secret(testbed, token=TOKEN)
    github.missing_permissions = {"deployments"}
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await until(lambda: github.states(SHA)[-1:] == ["success"])
    before = github.request_count
    await until(lambda: github.request_count > before + 3)
    assert len(github.states(SHA)) == len(set(github.states(SHA)))
    github.missing_permissions = set()
    await wait_reported(testbed, "dep-a", "success")


async def test_removed_github_deployment_is_recreated(testbed, github):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    await testbed.deployment("dep-a", source=commit(SHA))
    await testbed.wait_active("dep-a")
    await wait_reported(testbed, "dep-a", "success")
    github.deployments.clear()
    await testbed.deployment("dep-b", source=commit(OTHER))
    await wait_reported(testbed, "dep-a", "inactive")
    assert [d["states"][-1] for d in github.deployments if d["sha"] == SHA] == ["inactive"]


async def test_retry_after_applies_to_the_whole_project(testbed, github, monkeypatch):
    await secret(testbed, token=TOKEN)
    await project(testbed)
    github.failures, github.headers = [403], {"Retry-After": "3000"}
    await testbed.deployment("dep-a", source=commit(SHA))
    await until(lambda: github.request_count == 1)
    await testbed.deployment("dep-b", source=commit(OTHER))
    await testbed.settle()
    assert github.request_count == 1
    # The pause ends.
    monkeypatch.setattr(RequestPauses, "left", lambda *_: 0.0)
    for name in ("dep-a", "dep-b"):
        testbed.process.own.queues.add(event_map.github(name))
    await wait_reported(testbed, "dep-b", "success")
