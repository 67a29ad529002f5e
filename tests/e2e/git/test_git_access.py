"""Repositories behind a key, and messages that try to be more than words: from the push to the deployment."""

import json
import secrets
from pathlib import Path

from tests.e2e.demo import GIT_HOST
from tests.e2e.git_project import GitProject
from tests.e2e.testbed import NAMESPACE, eventually
from tests.testbed.ssh_server import SshServer

GOOD = {"main.py": "def kickoff(inputs):\n    return inputs\n"}


async def keep_secret(testbed, name: str, **data: str) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}
    await testbed.kubectl("apply", "-f", "-", stdin=json.dumps(made))


async def condition(git_project: GitProject, reason: str) -> dict:
    return await eventually(git_project.ready_condition, lambda seen: seen["reason"] == reason, 300)


async def test_ssh_repository(testbed, tmp_path: Path, host_address):
    """The key works for the poll and the build; another host key stops both, and the old deployment stays.

    Slow: waits for three polls of the repository and a build.
    """
    name = f"e2e-{secrets.token_hex(4)}"
    with SshServer(tmp_path / "ssh", host_address) as server:
        git_project = GitProject(testbed, name, server.create(name), server.url(name, host=GIT_HOST))
        identity, known = server.identity(), server.known_hosts(host=GIT_HOST)
        try:
            sha = git_project.repository.commit(GOOD, "By ssh")
            await keep_secret(testbed, name, identity=identity)
            await git_project.follow(secretRef={"name": name})
            seen = await condition(git_project, "HostKeyUnknown")
            assert (
                server.fingerprint() in seen["message"] and f"ssh-keyscan -p {server.port}" in seen["message"]
            )

            await keep_secret(testbed, name, identity=identity, known_hosts=known)
            done = await git_project.wait_finished(sha)
            assert (done["status"]["phase"], done["spec"]["message"]) == ("Active", "By ssh"), done["status"]

            server.change_host_keys()
            git_project.repository.commit({**GOOD, "more": "1"}, "Never seen")
            seen = await condition(git_project, "HostKeyMismatch")
            assert server.fingerprint() in seen["message"] and seen["status"] == "False"
            project = await testbed.object("projects", name)
            assert project["status"]["activeDeployment"] == done["metadata"]["name"]
            whole = json.dumps([project, await testbed.object("deployments", done["metadata"]["name"])])
            assert identity.split()[6] not in whole
        finally:
            await testbed.kubectl("delete", "cproj", name, "--ignore-not-found", "--wait=false")
            await testbed.kubectl("delete", "secret", name, "--ignore-not-found")


HOSTILE = [
    "\x1b[31mred\x1b[0m $(touch /tmp/x) `id` a\u202egnp.exe \u2066b\u2069\u200b ::error file=a::b\r\nlate",
    "x" * (1 << 20),
]


async def test_commit_messages_are_data(git_project):
    """The Deployment is made and says what was written; its build is another matter. Slow: a poll each."""
    for number, message in enumerate(HOSTILE):
        sha = git_project.repository.commit({**GOOD, "turn": str(number % 2)}, message)
        if number == 0:
            await git_project.follow()
        made = await git_project.deployment(sha)
        assert made["spec"]["message"].isprintable() and 0 < len(made["spec"]["message"]) <= 500
    listing = await git_project.testbed.kubectl("-n", NAMESPACE, "get", "events", "-o", "json")
    ours = [
        item for item in json.loads(listing)["items"] if item["involvedObject"]["name"] == git_project.project
    ]
    assert [one["message"] for one in ours if not one["message"].isprintable()] == []
