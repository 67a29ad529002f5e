"""Failing notifications are recorded on their Projects once, and removed when their receivers recover."""

import pytest
from aiohttp import web

from api.maintenance.record_failing_notifications import FailingNotificationsRecorder
from api.store.sql.schema import projects
from api.store.store import Store
from crds.kinds import PROJECT
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS
from tests.testbed.apiserver import serving
from tests.unit.api.store import builders

FAILING = {"type": "NotificationsFailing", "status": "True"}


@pytest.fixture
async def store(tmp_path):
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


@pytest.fixture
def patches():
    return []


@pytest.fixture
async def kube(patches):
    statuses = []

    async def patch(request):
        if statuses:
            return web.json_response({"reason": "ServiceUnavailable", "message": "no"}, status=statuses.pop())
        metadata = (await request.json())["metadata"]
        patches.append((metadata["uid"], metadata["annotations"][ANNOTATION_FAILING_NOTIFICATIONS]))
        return web.json_response({})

    routes = [web.patch(f"/apis/crewyard.dev/v1alpha1/namespaces/crews/{PROJECT.plural}/{{name}}", patch)]
    async with serving(routes) as found:
        found.statuses = statuses
        yield found


async def set_failing(store, names):
    async with store.database.write() as connection:
        await connection.execute(projects.update().values(failing_notifications=names))


async def test_each_change_is_written_once(store, kube, patches):
    await store.projects.observe(builders.project("demo", "uid-1"))
    recorder = FailingNotificationsRecorder(store, kube)
    await recorder.record_all(builders.NOW)
    assert patches == []
    for names in (["pager", "chat"], ["chat"]):
        await set_failing(store, names)
        await recorder.record_all(builders.NOW)
        await recorder.record_all(builders.NOW)
    assert patches == [("uid-1", "chat,pager"), ("uid-1", "chat")]


async def test_the_record_is_removed_also_after_a_restart(store, kube, patches):
    project = builders.project("demo", "uid-1")
    project.raw["status"] = {"conditions": [FAILING]}
    await store.projects.observe(project)
    recorder = FailingNotificationsRecorder(store, kube)
    await recorder.record_all(builders.NOW)
    await recorder.record_all(builders.NOW)
    assert patches == [("uid-1", None)]


async def test_a_refused_write_is_repeated(store, kube, patches):
    await store.projects.observe(builders.project("demo", "uid-1"))
    await set_failing(store, ["chat"])
    kube.statuses.append(403)
    recorder = FailingNotificationsRecorder(store, kube)
    await recorder.record_all(builders.NOW)
    assert patches == []
    await recorder.record_all(builders.NOW)
    assert patches == [("uid-1", "chat")]


async def test_a_lost_record_is_written_again(store, kube, patches):
    await store.projects.observe(builders.project("demo", "uid-1"))
    await set_failing(store, ["chat"])
    recorder = FailingNotificationsRecorder(store, kube)
    await recorder.record_all(builders.NOW)
    await recorder.record_all(builders.NOW)
    assert patches == [("uid-1", "chat")]
    await recorder.record_all(builders.later(600))
    assert patches == [("uid-1", "chat")] * 2
