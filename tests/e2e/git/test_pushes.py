"""Pushes reported by a signed webhook to the installed service."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from datetime import datetime
from itertools import pairwise

import pytest

from tests.e2e.testbed import eventually

WINDOW_SECONDS = 10
"""Coalescing window of the installation (controller/config.py)."""
# This Python version is not supported: the builds fail when they read the configuration.
WRONG = '[deployment]\npython = "2.7"\n'


@pytest.fixture
async def hook(git_project):
    """Deliver a push, as GitHub does; the Secret is deleted after the test."""
    token, name = secrets.token_hex(16), f"{git_project.project}-hook"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"token": token},
    }
    await git_project.testbed.kubectl("apply", "-f", "-", stdin=json.dumps(secret))

    async def tell(sha: str, delivery: str = "") -> str:
        payload = {"ref": "refs/heads/main", "after": sha, "repository": {"full_name": git_project.project}}
        body = json.dumps(payload).encode()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": delivery or secrets.token_hex(8),
            "X-Hub-Signature-256": f"sha256={hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}",
        }
        path = f"/v1/hooks/git/{git_project.project}"
        return (await git_project.testbed.call("POST", path, data=body, headers=headers, key="")).data[
            "effect"
        ]

    tell.secret = name
    yield tell
    await git_project.testbed.kubectl("delete", "secret", name, "--ignore-not-found")


async def test_push_burst_builds_two_and_replay_builds_none(git_project, hook):
    """Slow: pushes for longer than the coalescing window."""
    git = {"url": git_project.url, "ref": {"branch": "main"}, "interval": "1h"}
    spec = {"source": {"git": git}, "webhook": {"secretRef": {"name": hook.secret}}}
    shas = [git_project.repository.commit({"main.py": "0", "crew.toml": WRONG}, "Push 0")]
    begun = time.monotonic()
    await git_project.testbed.apply("Project", git_project.project, spec)
    await git_project.deployment(shas[0])
    for number in range(1, 20):
        await asyncio.sleep(max(0.0, begun + number / 2 - time.monotonic()))
        shas.append(
            git_project.repository.commit({"main.py": str(number), "crew.toml": WRONG}, f"Push {number}")
        )
        assert await hook(shas[-1], str(number)) == "look"
    assert await hook(shas[-1], "another id") == "none"
    await git_project.deployment(shas[-1])
    made = await git_project.testbed.get("/v1/deployments", project=git_project.project)
    # One immediately, then at most one in each window, however slow the machine is.
    created = sorted(datetime.fromisoformat(deployment["created_at"]) for deployment in made)
    gaps = [(after - before).total_seconds() for before, after in pairwise(created)]
    assert gaps and min(gaps) >= WINDOW_SECONDS - 1, gaps  # times are whole seconds
    assert len(made) < len(shas)
    # The status is written after the Deployment. Which commits it names as not built depends on the polls.
    await eventually(
        git_project.ready_condition,
        lambda seen: f"HEAD is at {shas[-1]}" in seen["message"].replace("refs/heads/main", "HEAD"),
    )
