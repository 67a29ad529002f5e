"""Deployments whose source cannot be had, or should not be: every reason, caused for real."""

import io
import json
import secrets
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.daily import daily
from tests.e2e.demo import GIT_HOST
from tests.e2e.failures import failed
from tests.e2e.git_project import GitProject
from tests.e2e.testbed import NAMESPACE, eventually
from tests.e2e.upload_project import UploadProject, archive
from tests.testbed.git_server import GitServer

GOOD = {"main.py": "def kickoff(inputs):\n    return inputs\n"}


async def ready_reason(git_project, reason: str) -> dict:
    return await eventually(git_project.ready_condition, lambda seen: seen["reason"] == reason, 300)


async def test_missing_repository(git_project):
    git_project.url = git_project.url.replace(git_project.project, "nowhere")
    await git_project.follow()
    seen = await ready_reason(git_project, "GitNotFound")
    assert seen["status"] == "False" and "spec.source.git.url" in seen["message"]


async def test_missing_branch(git_project):
    git_project.repository.commit(GOOD, "Begin")
    await git_project.follow("release")
    seen = await ready_reason(git_project, "BranchNotFound")
    assert "release" in seen["message"] and "main" in seen["message"]


async def secret(testbed, name: str, password: str) -> None:
    await testbed.kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "stringData": {"username": "crew", "password": password},
            }
        ),
    )


async def test_repository_that_requires_a_password(testbed, git_root, host_address):
    """Project and deployment report a wrong password; the right one builds the commit.

    Slow: polls and builds with a wrong password, then with the right one.
    """
    name, password = f"e2e-{secrets.token_hex(4)}", secrets.token_urlsafe(16)
    with GitServer(git_root, host_address, username="crew", password=password) as server:
        git_project = GitProject(testbed, name, server.create(name), server.url(name, host=GIT_HOST))
        try:
            sha = git_project.repository.commit(GOOD, "Begin")
            await secret(testbed, name, "wrong-password-of-this-test")
            await git_project.follow(secretRef={"name": name})
            seen = await ready_reason(git_project, "GitAuthFailed")
            assert "secretRef" in seen["message"]
            body = {"project": name, "source": {"git": {"commit": sha}}, "message": "By hand"}
            made = await testbed.post("/v1/deployments", body)
            upload_project = UploadProject(testbed, name)
            done = await failed(upload_project, made["id"], "GitAuthFailed", ["secretRef"])
            whole = json.dumps(
                [done, seen, await upload_project.object(made["id"]), await upload_project.pods(made["id"])]
            )
            assert "wrong-password" not in whole + await upload_project.log(made["id"])

            await secret(testbed, name, password)
            again = await testbed.post("/v1/deployments", body)
            assert again["id"] != made["id"]
            assert (await upload_project.wait_finished(again["id"]))["status"] == "active"
            whole = json.dumps(
                [await upload_project.object(again["id"]), await upload_project.pods(again["id"])]
            )
            assert password not in whole + await upload_project.log(again["id"])
        finally:
            await testbed.kubectl("delete", "cproj", name, "--ignore-not-found", "--wait=false")
            await testbed.kubectl("delete", "secret", name, "--ignore-not-found")


async def test_missing_commit(testbed, git_project):
    git_project.repository.commit(GOOD, "Begin")
    await git_project.follow(suspend=True)
    absent = "0123456789abcdef0123456789abcdef01234567"
    body = {"project": git_project.project, "source": {"git": {"commit": absent}}, "message": "Lost"}

    async def ask():
        return await testbed.call("POST", "/v1/deployments", body)

    made = await eventually(ask, lambda answer: answer.status == 201, 300)
    await failed(UploadProject(testbed, git_project.project), made.data["id"], "GitNotFound", [absent[:7]])


async def test_unsigned_commit(testbed, git_project, tmp_path):
    """The commit of an allowed signer becomes active, and stays so when an unsigned one follows.

    Slow: builds an image.
    """
    key, name = tmp_path / "key", f"{git_project.project}-signers"
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", str(key)]
    subprocess.run(keygen, check=True, timeout=60)
    signers = {"allowed_signers": f"ann@example.com {Path(f'{key}.pub').read_text()}"}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"crewyard.dev/project": git_project.project}}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": signers}
    await testbed.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    try:
        repository = git_project.repository
        signed = repository.sign(repository.commit(GOOD, "Begin"), key)
        await git_project.follow(verify={"secretRef": {"name": name}})
        assert (await git_project.wait_finished(signed))["status"]["phase"] == "Active"
        unsigned = repository.commit({**GOOD, "more.py": "x = 1\n"}, "Not signed")
        made = await git_project.wait_finished(unsigned)
        identity = made["metadata"]["name"].replace("-", "_", 1)
        upload_project = UploadProject(testbed, git_project.project)
        await failed(upload_project, identity, "VerificationFailed", ["is not signed", "source.git.verify"])
        project = await testbed.object("projects", git_project.project)
        assert (
            project["status"]["activeDeployment"]
            == (await git_project.deployment(signed))["metadata"]["name"]
        )
    finally:
        await testbed.kubectl("delete", "secret", name, "--namespace", NAMESPACE)


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for info, content in members:
            info.size = len(content) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(entries: dict[str, bytes], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries.items():
            packed.writestr(name, content)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            packed.writestr(info, "/etc/passwd")
    return buffer.getvalue()


MAIN = (tarfile.TarInfo("main.py"), GOOD["main.py"].encode())
HOSTILE = {
    "climbs": (lambda: tar_of(MAIN, (tarfile.TarInfo("../out.py"), b"x")), "ContextInvalid", ["../out.py"]),
    "absolute": (
        lambda: tar_of(MAIN, (tarfile.TarInfo("/etc/cron.d/x"), b"x")),
        "ContextInvalid",
        ["/etc/cron.d"],
    ),
    "device": (lambda: tar_of(MAIN, (special("null", tarfile.CHRTYPE), b"")), "ContextInvalid", ["null"]),
    "fifo": (lambda: tar_of(MAIN, (special("pipe", tarfile.FIFOTYPE), b"")), "ContextInvalid", ["pipe"]),
    "zip link": (lambda: zip_of({"main.py": b""}, link="passwd"), "ContextInvalid", ["passwd"]),
    "zip climbs": (lambda: zip_of({"main.py": b"", "..\\out.py": b""}), "ContextInvalid", ["out.py"]),
    "no archive": (lambda: b"This is no archive.", "ContextInvalid", [".tar.gz", ".zip"]),
    "truncated": (
        lambda: archive({"main.py": secrets.token_bytes(20000)})[:15000],
        "ContextInvalid",
        ["damaged"],
    ),
    "duplicate": (lambda: tar_of(MAIN, MAIN), "ContextInvalid", ["main.py", "twice"]),
    "empty": (lambda: tar_of(), "ContextInvalid", ["no file"]),
    "bomb": (lambda: archive({"main.py": b"", "zeros": bytes(200 << 20)}), "ContextTooLarge", ["100 times"]),
    "entries": (lambda: archive({f"{n}": b"" for n in range(50_001)}), "ContextTooLarge", ["50000"]),
}


@pytest.mark.parametrize("name", daily(HOSTILE, ("climbs", "zip link", "bomb")))
async def test_refused_archive(testbed, crew, name):
    pack, reason, words = HOSTILE[name]
    deployment = await crew.upload_project.deploy(pack())
    await failed(crew.upload_project, deployment, reason, words)
    assert (await testbed.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


async def test_too_large_upload_is_refused(testbed, crew):
    answer = await testbed.call("POST", "/v1/uploads", {"project": crew.project, "size": 101 << 20})
    assert (answer.status, answer.body["error"]["code"]) == (413, "payload_too_large")
