"""The internal API of build pods: build logs and the source archive."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from api.maintenance.garbage import delete_garbage
from api.store.logs.build_logs import Chunk
from api.store.store import Store
from crds.objects import Deployment
from tests.unit.api.internal.conftest import FakeObjects, Mint, Pods
from tests.unit.api.store import builders


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_log_chunks_are_stored_once(pods: Pods, store: Store, bearer: Mint) -> None:
    body = {
        "pod": "dep-a-a1",
        "container": "assemble",
        "chunks": [{"seq": 1, "text": "one\n"}, {"seq": 2, "text": "two\n"}],
    }
    for _ in range(2):
        async with pods.post(
            "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
        ) as response:
            assert (response.status, await response.json()) == (200, {"acknowledged": 2})
    assert (await store.build_logs.read("dep-a.run-uid")).text == "one\ntwo\n"
    async with pods.post(
        "/internal/v1/builds/dep-b/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as response:
        assert response.status == 401


async def test_log_keyed_without_uid_is_continued(pods: Pods, store: Store, bearer: Mint) -> None:
    await store.build_logs.append("dep-a", "dep-a-a1", "assemble", [Chunk(1, "one\n")])
    for container, seq, text in (("assemble", 2, "two\n"), ("push", 1, "three\n")):
        body = {"pod": "dep-a-a1", "container": container, "chunks": [{"seq": seq, "text": text}]}
        async with pods.post(
            "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
        ) as response:
            assert (response.status, await response.json()) == (200, {"acknowledged": seq})
    key = await store.build_logs.key("dep-a", "run-uid")
    assert (await store.build_logs.read(key)).text == "one\ntwo\nthree\n"


@pytest.mark.parametrize("recreated", [False, True])
async def test_log_of_deleted_deployment_is_not_stored(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects, recreated: bool
) -> None:
    objects.deployment_deleted = True
    if recreated:
        await store.deployments.observe(builders.deployment("dep-a"))
    body = {"pod": "dep-a-a1", "container": "assemble", "chunks": [{"seq": 1, "text": "one\n"}]}
    async with pods.post(
        "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as response:
        assert response.status == 404
    while await delete_garbage(store):
        pass
    assert (await store.build_logs.read("dep-a.run-uid")).text == ""


async def test_build_log_before_deployment_is_indexed(pods: Pods, store: Store, bearer: Mint) -> None:
    body = {"pod": "dep-a-a1", "container": "assemble", "chunks": [{"seq": 1, "text": "one\n"}]}
    async with pods.post(
        "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as response:
        assert response.status == 200
    # Deleting the deployment deletes its log too.
    await store.deployments.remove("dep-a", "run-uid")
    while await delete_garbage(store):
        pass
    assert (await store.build_logs.read("dep-a.run-uid")).text == ""


async def test_build_downloads_only_its_own_archive(pods: Pods, store: Store, bearer: Mint) -> None:
    data = b"bytes of an archive"
    mine = await store.uploads.create("demo", len(data), None, builders.NOW, builders.later(60))
    foreign = await store.uploads.create("demo", len(data), None, builders.NOW, builders.later(60))
    for row in (mine, foreign):
        await store.receive(row.id, chunks(data), builders.NOW)
    deployment = builders.deployment("dep-a")
    source = {"archive": {"upload": mine.id}}
    await store.deployments.observe(
        Deployment({**deployment.raw, "spec": {"project": "demo", "source": source}})
    )
    token = bearer("dep-a", kind="build", uid=deployment.uid)
    async with pods.get(f"/internal/v1/uploads/{mine.id}", headers=token) as response:
        assert (response.status, await response.read()) == (200, data)
        assert response.headers["X-Crewyard-Sha256"] == hashlib.sha256(data).hexdigest()
        assert response.headers["Content-Length"] == str(len(data))
    async with pods.get(f"/internal/v1/uploads/{foreign.id}", headers=token) as response:
        assert response.status == 404
    async with pods.get(f"/internal/v1/uploads/{mine.id}", headers=bearer("dep-a")) as response:
        assert response.status == 401


async def test_an_archive_that_lost_bytes_ends_its_connection(
    pods: Pods, store: Store, bearer: Mint, tmp_path: Path
) -> None:
    deployment, data = builders.deployment("dep-a"), b"bytes of an archive"
    row = await store.uploads.create("demo", len(data), None, builders.NOW, builders.later(60))
    await store.receive(row.id, chunks(data), builders.NOW)
    spec = {"project": "demo", "source": {"archive": {"upload": row.id}}}
    await store.deployments.observe(Deployment({**deployment.raw, "spec": spec}))
    [path] = [each for each in tmp_path.rglob(f"{row.id}/*") if each.is_file()]
    path.write_bytes(data[:5])
    token = bearer("dep-a", kind="build", uid=deployment.uid)
    async with asyncio.timeout(30), pods.get(f"/internal/v1/uploads/{row.id}", headers=token) as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_build_downloads_no_archive_of_another_namespace(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    theirs = builders.project("theirs", "project-2")
    theirs.raw["metadata"]["namespace"] = "team-a"
    await store.projects.observe(theirs)
    await store.projects.observe(builders.project())
    uploads = {}
    for project in ("demo", "theirs"):
        row = await store.uploads.create(project, 5, None, builders.NOW, builders.later(60))
        await store.receive(row.id, chunks(b"bytes"), builders.NOW)
        uploads[project] = row.id
        deployment = builders.deployment(f"dep-{project}")
        spec = {"project": "demo", "source": {"archive": {"upload": row.id}}}
        await store.deployments.observe(Deployment({**deployment.raw, "spec": spec}))
    for project, status in (("demo", 200), ("theirs", 404)):
        token = bearer(f"dep-{project}", kind="build", uid=f"uid-of-dep-{project}")
        async with pods.get(f"/internal/v1/uploads/{uploads[project]}", headers=token) as response:
            assert response.status == status


async def test_another_deployment_of_the_name_gets_no_archive(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    row = await store.uploads.create("demo", 5, None, builders.NOW, builders.later(60))
    await store.receive(row.id, chunks(b"bytes"), builders.NOW)
    deployment = builders.deployment("dep-b")
    spec = {"project": "demo", "source": {"archive": {"upload": row.id}}}
    await store.deployments.observe(Deployment({**deployment.raw, "spec": spec}))
    token = bearer("dep-b", kind="build", uid="another uid")
    async with pods.get(f"/internal/v1/uploads/{row.id}", headers=token) as response:
        assert response.status == 404
