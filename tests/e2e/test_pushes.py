"""Pushes told by a signed webhook, to the service as it is installed."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time

import pytest

from tests.e2e.yard import eventually

# No such Python is offered: the builds end with their first look at the configuration.
WRONG = '[deployment]\npython = "2.7"\n'


@pytest.fixture
async def hook(team):
    """Tells the service of a push, as GitHub does; the Secret goes with the test."""
    token, name = secrets.token_hex(16), f"{team.project}-hook"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"token": token},
    }
    await team.yard.kubectl("apply", "-f", "-", stdin=json.dumps(secret))

    async def tell(sha: str, delivery: str = "") -> str:
        said = {"ref": "refs/heads/main", "after": sha, "repository": {"full_name": team.project}}
        body = json.dumps(said).encode()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": delivery or secrets.token_hex(8),
            "X-Hub-Signature-256": f"sha256={hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}",
        }
        path = f"/v1/hooks/git/{team.project}"
        return (await team.yard.call("POST", path, data=body, headers=headers, key="")).data["effect"]

    tell.secret = name
    yield tell
    await team.yard.kubectl("delete", "secret", name, "--ignore-not-found")


async def test_of_twenty_pushes_in_ten_seconds_two_are_built_and_a_replay_does_nothing(team, hook):
    git = {"url": team.url, "ref": {"branch": "main"}, "interval": "1h"}
    spec = {"source": {"git": git}, "webhook": {"secretRef": {"name": hook.secret}}}
    shas = [team.repository.commit({"main.py": "0", "crew.toml": WRONG}, "Push 0")]
    begun = time.monotonic()
    await team.yard.apply("Project", team.project, spec)
    await team.deployment(shas[0])
    for number in range(1, 20):
        await asyncio.sleep(max(0.0, begun + number / 2 - time.monotonic()))
        shas.append(team.repository.commit({"main.py": str(number), "crew.toml": WRONG}, f"Push {number}"))
        assert await hook(shas[-1], str(number)) == "look"
    assert await hook(shas[-1], "another id") == "none"
    lasted = time.monotonic() - begun
    await team.deployment(shas[-1], 90)
    made = await team.yard.get("/v1/deployments", project=team.project)
    # One at once, one at the end; where the pushes take longer than a window there is room between.
    assert len(made) <= 2 + lasted // 10
    # The project's status is written after its Deployment.
    ready = await eventually(
        team.ready,
        lambda seen: f"HEAD is at {shas[-1]}" in seen["message"].replace("refs/heads/main", "HEAD"),
    )
    assert "Not built, since newer ones followed: " in ready["message"]
