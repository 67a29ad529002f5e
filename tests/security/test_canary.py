"""Secrets planted everywhere, used in good builds and bad ones, then searched for: none lies elsewhere."""

import asyncio
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.index import WheelIndex, wheel
from tests.e2e.testbed import E2eTestbed, eventually
from tests.e2e.upload_project import UploadProject, archive
from tests.security import places
from tests.security.canaries import Canaries, CanaryMatch
from tests.security.commandlines import CommandLines
from tests.security.etcd import EtcdReader
from tests.security.planted import PlantedSecrets
from tests.testbed.git_server import GitServer
from tests.testbed.ssh_server import SshServer

STATE = Path(os.environ.get("CREWYARD_STATE", "/nowhere"))
# A pod gets its token from its specification. It is valid for one run or one build, and expires with it.
BY_DESIGN = {
    "run-token": ("/registry/pods/crews/", "kubectl Pod "),
    "build-token": ("/registry/pods/crews/", "kubectl Pod "),
}


async def use_keys(planted: PlantedSecrets) -> None:
    """Callers with keys and tokens of all kinds, let in and turned away."""
    testbed, know, project = planted.testbed, planted.canaries.know, planted.https.project
    made = await testbed.post("/v1/api-keys", {"name": "canary", "scopes": ["read"], "projects": [project]})
    key = know("api-key", made["key"])
    account = await testbed.kubectl("create", "token", "default", "--audience=crewyard", "--duration=10m")
    forged = f"{account.strip().rpartition('.')[0]}.{planted.canaries.draw('oidc', '')}"
    know("kubernetes-token", account.strip().rpartition(".")[2])
    for text in (key, account.strip(), forged, f"{key}x"):
        await testbed.call("GET", f"/v1/projects/{project}", key=text)
        await testbed.call("POST", "/v1/runs", {"deployment": project}, key=text)
        await testbed.call("GET", "/v1/runs", params={"access_token": planted.canaries["oidc"][:8]}, key=text)
    await testbed.call("DELETE", f"/v1/api-keys/{made['id']}")
    assert (await testbed.call("GET", "/v1/runs", key=key)).status == 401


async def use_hook(planted: PlantedSecrets) -> None:
    """A delivery that is signed, and one that is not."""
    body = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": "octo/tides"}}).encode()
    for token, status in ((planted.canaries["webhook"], 202), ("wrong", 404)):
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": secrets.token_hex(8),
            "X-Hub-Signature-256": f"sha256={hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}",
        }
        path = f"/v1/hooks/git/{planted.https.project}"
        answer = await planted.testbed.call("POST", path, data=body, headers=headers, key="")
        assert answer.status == status, answer.body


async def use_upload(planted: PlantedSecrets) -> None:
    """An archive at a signed address, for a deployment that fails."""
    testbed, content = (
        planted.testbed,
        archive({"crew.toml": "[deployment]\npython = '2.7'\n", "main.py": ""}),
    )
    name = planted.ssh.project
    await planted.known(name)
    ticket = await testbed.post("/v1/uploads", {"project": name, "size": len(content)})
    planted.canaries.know("upload-address", ticket["upload_url"][-40:])
    for body, status in ((content + b"more", 400), (content, 204)):
        answer = await testbed.call("PUT", ticket["upload_url"], data=body, key="", headers=ticket["headers"])
        assert answer.status // 100 == status // 100, answer.body
    asked = {"project": name, "build_context_url": ticket["build_context_url"], "override": True}
    made = await testbed.post("/v1/deployments", {**asked, "message": "By upload"})
    assert (await UploadProject(testbed, name).wait_finished(made["id"]))["error"][
        "reason"
    ] == "ConfigInvalid"


async def use_https(planted: PlantedSecrets) -> None:
    """A good build with runs, then a bad one, then a password that does not hold."""
    git_project, testbed = planted.https, planted.testbed
    done = await git_project.wait_finished(planted.https.repository.head())
    assert done["status"]["phase"] == "Active", done["status"]
    crew = BuiltCrew(testbed, git_project.project, done["metadata"]["name"].replace("-", "_", 1))
    quiet, tells = await asyncio.gather(crew.run("kickoff"), crew.run("tells"))
    assert quiet["output"] == len(planted.canaries["env-api"])
    assert (tells["status"], tells["error"]["reason"]) == ("failed", "CrewError")
    logs = (await testbed.call("GET", f"/v1/runs/{tells['id']}/logs")).body.decode()
    assert f"{planted.control} *** ***" in logs

    bad = await git_project.wait_finished(planted.commit("harbour-pilot==9.9\n"))
    assert bad["status"]["error"]["reason"] == "DependencyResolution", bad["status"]
    await planted.keep(
        f"{git_project.project}-git", username="git", password=planted.canaries.draw("git-wrong")
    )
    planted.commit("harbour-pilot==1.2\n")
    await eventually(git_project.ready_condition, lambda seen: seen["reason"] == "GitAuthFailed", 600)


async def use_ssh(planted: PlantedSecrets, server: SshServer) -> None:
    """A good build, then a host that is another one."""
    done = await planted.ssh.wait_finished(planted.ssh.repository.head())
    assert done["status"]["phase"] == "Active", done["status"]
    server.change_host_keys()
    planted.ssh.repository.commit({"main.py": "late"}, "Never seen")
    await eventually(planted.ssh.ready_condition, lambda seen: seen["reason"] == "HostKeyMismatch", 600)


async def know_the_services_own(planted: PlantedSecrets) -> None:
    """The keys of the installation, and the tokens of the pods that ran."""
    testbed, know = planted.testbed, planted.canaries.know
    know("admin-key", testbed.key)
    shown = await testbed.kubectl("-n", places.SYSTEM, "get", "secret", "crewyard-tokens", "-o", "json")
    know("token-key", json.loads(shown)["data"]["key"])
    listed = await testbed.kubectl(
        "get", "pods", "-l", f"crewyard.dev/project in ({','.join(planted.projects)})", "-o", "json"
    )
    for pod in json.loads(listed)["items"]:
        kind = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            for entry in container.get("env", ()):
                if entry["name"] == "CREWYARD_TOKEN":
                    know(f"{kind}-token", entry["value"])


async def everything(
    planted: PlantedSecrets, etcd: EtcdReader, commands: Iterable[bytes], since: float
) -> AsyncIterator[tuple[str, bytes]]:
    """All places, as pairs with their bytes."""
    for key, value in etcd.written:
        yield f"etcd {key}", value
    async for key, value in etcd.all():
        yield f"etcd {key}", value
    for found in (
        places.logs(STATE, since),
        places.store(STATE, since),
        places.images(STATE, planted.projects),
    ):
        for pair in found:
            yield pair
    for source in (
        places.metrics(planted.testbed),
        places.objects(planted.testbed),
        places.answers(planted.testbed, planted.projects),
    ):
        async for pair in source:
            yield pair
    for line in commands:
        yield "a command line", line


def allowed(sight: CanaryMatch) -> bool:
    """Whether a secret may be there: a pod's token in the pod; the operator's key where it was typed."""
    if sight.secret == "admin-key":
        return sight.place == "a command line"
    place = sight.place.removeprefix("etcd ")
    return place.startswith(BY_DESIGN.get(sight.secret, ("nowhere",)))


@pytest.mark.exclusive
@pytest.mark.skipif(
    not STATE.is_dir(), reason="etcd, logs and images are searched on the dev cluster's machine"
)
async def test_no_secret_outside_of_secrets(testbed: E2eTestbed, tmp_path, host_address):
    """Slow: uses each kind of secret and then searches everything."""
    canaries, since = Canaries(), time.time()
    (tmp_path / "git").mkdir()
    name, content = wheel("harbour_pilot", "1.2", "WORD = 'aboard'\n")
    etcd = EtcdReader.open(STATE)
    await etcd.follow()
    with (
        GitServer(tmp_path / "git", host_address, username="git", password=canaries.draw("git")) as git,
        SshServer(tmp_path / "ssh", host_address) as ssh,
        WheelIndex(host_address, "pilot", canaries.draw("index"), {name: content}) as index,
        CommandLines() as commands,
    ):
        planted = await PlantedSecrets.make(testbed, canaries, git, ssh, index)
        try:
            async with asyncio.TaskGroup() as uses:
                for use in (use_keys, use_hook, use_upload, use_https):
                    uses.create_task(use(planted))
                uses.create_task(use_ssh(planted, ssh))
            await know_the_services_own(planted)
            await etcd.caught_up()
            control = Canaries(mark=planted.control)
            sights: set[CanaryMatch] = set()
            shown: set[str] = set()
            async for place, body in everything(planted, etcd, list(commands.seen), since):
                sights |= canaries.sights(place, body)
                shown |= {sight.place for sight in control.sights(place, body)}
            assert sorted(sight for sight in sights if not allowed(sight)) == []
            # The search would have found them: each place shows what is no secret.
            for start in (
                "etcd /registry/crewyard.dev/projects/",
                "logs/pods/",
                "data/volumes/",
                "image crews/",
                "GET /v1/runs/",
                "kubectl Project",
            ):
                assert any(place.startswith(start) for place in shown), (start, sorted(shown))
            assert {sight.secret for sight in sights} >= set(BY_DESIGN), "pods show their tokens"
        finally:
            await planted.remove()
            await etcd.close()
