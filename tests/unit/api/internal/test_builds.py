"""What a build pod is answered: its log is kept, and it gets only its own archive."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from api.maintenance.garbage import delete_garbage
from api.store.logs.build_logs import Chunk
from api.store.store import Store
from crds.objects import Deployment
from tests.unit.api.internal.conftest import Mint, Objects, Pods
from tests.unit.api.store import builders


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_chunks_are_acknowledged_and_kept_once(pods: Pods, store: Store, bearer: Mint) -> None:
    body = {
        "pod": "dep-a-a1",
        "container": "assemble",
        "chunks": [{"seq": 1, "text": "one\n"}, {"seq": 2, "text": "two\n"}],
    }
    for _ in range(2):
        async with pods.post(
            "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
        ) as answer:
            assert (answer.status, await answer.json()) == (200, {"acknowledged": 2})
    assert (await store.build_logs.read("dep-a.run-uid")).text == "one\ntwo\n"
    async with pods.post(
        "/internal/v1/builds/dep-b/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as answer:
        assert answer.status == 401


async def test_a_log_that_was_begun_before_uids_were_in_its_name_goes_on(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await store.build_logs.append("dep-a", "dep-a-a1", "assemble", [Chunk(1, "one\n")])
    for container, seq, said in (("assemble", 2, "two\n"), ("push", 1, "three\n")):
        body = {"pod": "dep-a-a1", "container": container, "chunks": [{"seq": seq, "text": said}]}
        async with pods.post(
            "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
        ) as answer:
            assert (answer.status, await answer.json()) == (200, {"acknowledged": seq})
    key = await store.build_logs.key("dep-a", "run-uid")
    assert (await store.build_logs.read(key)).text == "one\ntwo\nthree\n"


@pytest.mark.parametrize("made_again", [False, True])
async def test_what_a_build_says_after_its_deployment_went_is_not_kept(
    pods: Pods, store: Store, bearer: Mint, objects: Objects, made_again: bool
) -> None:
    objects.absent = True
    if made_again:
        await store.deployments.observe(builders.deployment("dep-a"))
    body = {"pod": "dep-a-a1", "container": "assemble", "chunks": [{"seq": 1, "text": "one\n"}]}
    async with pods.post(
        "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as answer:
        assert answer.status == 404
    while await delete_garbage(store):
        pass
    assert (await store.build_logs.read("dep-a.run-uid")).text == ""


async def test_a_build_that_is_known_sooner_than_its_deployment_is_no_stranger(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    body = {"pod": "dep-a-a1", "container": "assemble", "chunks": [{"seq": 1, "text": "one\n"}]}
    async with pods.post(
        "/internal/v1/builds/dep-a/logs", json=body, headers=bearer("dep-a", kind="build")
    ) as answer:
        assert answer.status == 200
    # So that its log goes with it.
    await store.deployments.remove("dep-a", "run-uid")
    while await delete_garbage(store):
        pass
    assert (await store.build_logs.read("dep-a.run-uid")).text == ""


async def test_a_build_reads_the_archive_it_is_made_from_and_no_other(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    data = b"bytes of an archive"
    mine = await store.uploads.create("demo", len(data), None, builders.NOW, builders.later(60))
    foreign = await store.uploads.create("demo", len(data), None, builders.NOW, builders.later(60))
    for row in (mine, foreign):
        await store.receive(row.id, chunks(data), builders.NOW)
    made = builders.deployment("dep-a")
    source = {"archive": {"upload": mine.id}}
    await store.deployments.observe(Deployment({**made.raw, "spec": {"project": "demo", "source": source}}))
    token = bearer("dep-a", kind="build")
    async with pods.get(f"/internal/v1/uploads/{mine.id}", headers=token) as answer:
        assert (answer.status, await answer.read()) == (200, data)
        assert answer.headers["X-Crewyard-Sha256"] == hashlib.sha256(data).hexdigest()
        assert answer.headers["Content-Length"] == str(len(data))
    async with pods.get(f"/internal/v1/uploads/{foreign.id}", headers=token) as answer:
        assert answer.status == 404
    async with pods.get(f"/internal/v1/uploads/{mine.id}", headers=bearer("dep-a")) as answer:
        assert answer.status == 401
