"""Build contexts on external servers (`build_context_url`)."""

import dataclasses
from pathlib import Path

import pytest
from aiohttp import web
from sqlalchemy import select

from api.build_context import upload
from api.build_context.upload import ContextFetcher
from api.services import SERVICES
from api.store.sql.schema import uploads
from api.store.volume import Volume
from crds.installation_limits import InstallationLimits
from tests.testbed.ports import free_port

HERE = "127.0.0.2"


@pytest.fixture
async def port(testbed):
    """Start an allowed external server; yield its port."""

    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * int(request.query["size"]))

    application = web.Application()
    application.router.add_get("/archive", serve)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    found = free_port()
    await web.TCPSite(runner, HERE, found).start()
    services = testbed.client.server.app[SERVICES]
    config = dataclasses.replace(
        services.config,
        context_hosts=f"{HERE}:{found}",
        net_allow=(f"{HERE}/32",),
        limits=InstallationLimits(context_bytes=1000),
    )
    object.__setattr__(services, "context_fetcher", ContextFetcher(config, testbed.store))
    await testbed.add_project("crew")
    yield found
    await runner.cleanup()


async def post(testbed, url, **more):
    return await testbed.call(
        "POST", "/v1/deployments", {"project": "crew", "build_context_url": url, **more}
    )


async def stored_uploads(testbed):
    async with testbed.store.database.read() as connection:
        return (await connection.execute(select(uploads))).all()


async def test_context_is_stored_before_the_deployment_is_created(testbed, port):
    status, _, _ = await post(testbed, f"http://{HERE}:{port}/archive?size=1000")
    assert status == 503  # There is no apiserver to create the object.
    (row,) = await stored_uploads(testbed)
    assert (row.project, row.size, row.stored_at) == ("crew", 1000, testbed.clock[0])
    assert b"".join([part async for part in testbed.store.blobs.read(row.blob)]) == b"x" * 1000


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("http://{at}/archive?size=1001", 413, "more than 1000 bytes"),
        ("http://{at}/archive?size=0", 400, "0 bytes"),
        ("http://{at}/absent", 400, "got status 404"),
        (
            "http://elsewhere.example/archive",
            400,
            "elsewhere.example:80, which is not in CREWYARD_CONTEXT_HOSTS",
        ),
        ("http://user:word@{at}/archive", 400, "must not contain a user or a password"),
        ("file:///etc/passwd", 400, "must begin with https://"),
    ],
)
async def test_failed_fetch_names_the_field_and_the_next_step(testbed, port, url, status, words):
    got, answer, _ = await post(testbed, url.format(at=f"{HERE}:{port}"))
    assert (got, answer["error"]["details"]["field"]) == (status, "build_context_url")
    assert words in answer["error"]["message"] and "word@" not in answer["error"]["message"]
    if status == 400:
        assert "POST /v1/uploads" in answer["error"]["message"]
    assert await stored_uploads(testbed) == []


async def test_project_with_a_git_source_rejects_a_build_context(testbed, port):
    await testbed.add_project("followed", {"source": {"git": {"url": "https://git.example/x"}}})
    url = f"http://{HERE}:{port}/archive?size=9"
    status, answer, _ = await testbed.call(
        "POST", "/v1/deployments", {"project": "followed", "build_context_url": url}
    )
    assert (status, answer["error"]["details"]["field"]) == (409, "build_context_url")
    assert await stored_uploads(testbed) == []


async def test_parallel_fetches_are_limited(testbed, port, monkeypatch):
    monkeypatch.setattr(upload, "SLOT_TIMEOUT_SECONDS", 0.05)
    fetcher = testbed.client.server.app[SERVICES].context_fetcher
    for _ in range(upload.MAX_PARALLEL_FETCHES):
        await fetcher._slots.acquire()
    status, _, headers = await post(testbed, f"http://{HERE}:{port}/archive?size=9")
    assert status == 503 and headers["Retry-After"]
    fetcher._slots.release()
    assert (await post(testbed, f"http://{HERE}:{port}/archive?size=2000"))[0] == 413


async def test_archive_beyond_the_stored_bytes_of_its_project_is_refused(testbed, port):
    services = testbed.client.server.app[SERVICES]
    limits = InstallationLimits(project_bytes=1500)
    object.__setattr__(services, "config", dataclasses.replace(services.config, limits=limits))
    url = f"http://{HERE}:{port}/archive?size=800"
    await post(testbed, url)
    status, answer, headers = await post(testbed, url)
    assert (status, answer["error"]["details"]["used_bytes"]) == (429, 800) and headers["Retry-After"]
    assert len(await stored_uploads(testbed)) == 1
    async with testbed.client.get("/metrics") as response:
        assert 'crewyard_limit_reached_total{limit="project_bytes"} 1.0' in await response.text()


async def test_archive_beyond_the_bytes_of_kept_uploads_is_counted(testbed, port):
    services = testbed.client.server.app[SERVICES]
    config = dataclasses.replace(services.context_fetcher._config, kept_uploads=900)
    object.__setattr__(services, "context_fetcher", ContextFetcher(config, testbed.store))
    assert (await post(testbed, f"http://{HERE}:{port}/archive?size=901"))[0] == 429
    async with testbed.client.get("/metrics") as response:
        assert 'crewyard_limit_reached_total{limit="kept_upload_bytes"} 1.0' in await response.text()


async def test_archive_for_a_full_volume_is_not_announced(testbed, port):
    testbed.store.volume = Volume(Path("/"), 1, free_bytes=lambda _: 1)
    assert (await post(testbed, f"http://{HERE}:{port}/archive?size=9"))[0] == 503
    assert await stored_uploads(testbed) == []
