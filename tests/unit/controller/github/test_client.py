"""What GitHub's answers mean, spoken over a real connection."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.github import client
from controller.github.client import GitHub, GitHubProblem
from controller.github.comment import PullRequestComment
from controller.github.credentials import GitHubApp, GitHubToken
from controller.github.pauses import MAX_RETRY_SECONDS, RequestPauses
from controller.github.report import DeploymentReport
from tests.testbed.github_server import APP, INSTALLATION, LOGIN, REPOSITORY, TOKEN, github_server

REPORT = DeploymentReport(
    REPOSITORY, "a" * 40, "dep-a", "demo", "demo", False, "success", "Active", None, True
)
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


@pytest.fixture
async def github():
    async with github_server() as server:
        yield server


@pytest.fixture
async def hub(github):
    hub = GitHub(github.url)
    yield hub
    await hub.close()


@pytest.mark.parametrize(
    ("status", "headers", "message", "transient", "after"),
    [
        (403, {}, "Resource not accessible by integration", False, 0),
        (403, {"Retry-After": "7"}, SECONDARY, True, 7),
        (403, {}, SECONDARY, True, client.RATE_LIMIT_SECONDS),
        (429, {}, "too many", True, client.RATE_LIMIT_SECONDS),
        (429, {"Retry-After": "3"}, "too many", True, 3),
        (502, {}, "no", True, 0),
    ],
)
async def test_github_error_is_classified_with_its_retry_delay(
    github, hub, status, headers, message, transient, after
):
    github.failures, github.headers, github.message = [status], headers, message
    with pytest.raises(GitHubProblem) as found:
        await hub.set_commit_status(GitHubToken(TOKEN), REPORT)
    assert (found.value.transient, found.value.retry_after, found.value.status) == (transient, after, status)


async def test_expired_installation_token_is_renewed(github, hub):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    github.public_key = public.decode()
    app = GitHubApp(APP, INSTALLATION, pem.decode())
    await hub.set_commit_status(app, REPORT)
    github.revoked_tokens.add("token lent 1")
    with pytest.raises(GitHubProblem, match="401"):
        await hub.set_commit_status(app, REPORT)
    await hub.set_commit_status(app, REPORT)
    assert (github.tokens_issued, len(github.statuses)) == (2, 2)


async def test_payload_returned_as_text_is_recognized(github, hub):
    made = await hub.ensure_deployment(GitHubToken(TOKEN), REPORT)
    github.deployments[0]["payload"] = json.dumps(github.deployments[0]["payload"])
    assert await hub.ensure_deployment(GitHubToken(TOKEN), REPORT) == made
    assert len(github.deployments) == 1


async def test_the_account_is_asked_for_once_despite_many_markers(github, hub):
    marker = "<!-- crewyard/demo "
    for number in range(30):
        github.add_comment(7, "reader", f"{marker}2026 dep-{number} -->\nnot ours")
    text = PullRequestComment(REPOSITORY, 7, marker, "2027 dep-a", f"{marker}2027 dep-a -->\nours")
    await hub.put_comment(GitHubToken(TOKEN), text)
    assert [c["body"] for c in github.comments if c["login"] == LOGIN] == [text.body]
    # The list, the account, the new comment.
    assert github.request_count == 3


def test_pause_keeps_the_longest_and_expires():
    pauses, now, host = RequestPauses(), datetime.now(UTC), "https://api.github.com"
    pauses.pause("demo", host, 60, now)
    pauses.pause("demo", host, 5, now)
    assert (pauses.left("demo", host, now), pauses.left("other", host, now)) == (60, 0)
    assert pauses.left("demo", "https://git.example.com", now) == 0
    assert pauses.left("demo", host, now + timedelta(seconds=60)) == 0
    assert not pauses.until
    pauses.pause("demo", host, 1e9, now)
    assert pauses.left("demo", host, now) == MAX_RETRY_SECONDS
