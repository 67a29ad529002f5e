"""The index follows two namespaces, also over a restart, a lost index and a namespace that cannot be read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from api.config import ApiConfig
from api.maintenance.loops import WATCHES_PER_NAMESPACE
from api.store.store import Store
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from kube import errors
from kube.client import KubeClient
from tests.cluster.api.conftest import KEY, StoreTestbed, until

Start = Callable[..., Awaitable[None]]
WATCHES_IN_LOOPS = 4


@pytest.fixture
def config(kube: KubeClient, team: KubeClient, tmp_path: Path) -> ApiConfig:
    return ApiConfig(
        kube.namespace,
        "http://public",
        "http://internal",
        KEY,
        tmp_path / "data",
        run_ttl=86400,
        namespaces=(team.namespace,),
    )


async def create_theirs(team: KubeClient) -> None:
    await team.create(PROJECT, {"metadata": {"name": "theirs"}, "spec": {}})
    spec = {"project": "theirs", "source": {"archive": {"upload": "upl_b"}}}
    await team.create(DEPLOYMENT, {"metadata": {"name": "dep-b"}, "spec": spec})
    await team.create(RUN, {"metadata": {"name": "run-b"}, "spec": {"project": "theirs"}})


async def places(store: Store) -> list[str | None]:
    """Return the namespaces of the three objects of `create_theirs`; empty until all are known."""
    rows = (
        await store.projects.get("theirs"),
        await store.deployments.get("dep-b"),
        await store.runs.get("run-b"),
    )
    return [] if None in rows else [row.object_namespace for row in rows if row is not None]


async def test_objects_of_a_team_are_followed_over_a_restart(
    testbed: StoreTestbed, team: KubeClient, work: Start
) -> None:
    await work()
    await create_theirs(team)
    assert await until(lambda: places(testbed.store)) == [team.namespace] * 3
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "demo"}})
    await until(lambda: testbed.store.runs.get("run-a"))
    await work()
    assert await places(testbed.store) == [team.namespace] * 3
    await team.delete(RUN, "run-b")

    async def ended() -> bool:
        row = await testbed.store.runs.get("run-b")
        return row is not None and row.status == "canceled"

    await until(ended)
    row = await testbed.store.runs.get("run-a")
    assert row is not None and (row.status, row.object_namespace) == ("pending", None)


async def test_what_was_deleted_meanwhile_is_deleted_in_its_namespace_only(
    testbed: StoreTestbed, team: KubeClient, work: Start
) -> None:
    await create_theirs(team)
    await work()
    await until(lambda: places(testbed.store))
    await work(namespaces=())
    await team.delete(PROJECT, "theirs")
    # Not served any more: its rows stay as they are.
    assert await places(testbed.store)
    await work()

    async def gone() -> bool:
        return await testbed.store.projects.get("theirs") is None

    await until(gone)
    assert await testbed.store.projects.get("demo") is not None


async def test_a_namespace_that_may_not_be_read_stops_no_other(
    testbed: StoreTestbed, team: KubeClient, work: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = KubeClient.list

    async def listed(self: KubeClient, *arguments: object, **named: object) -> object:
        if self.namespace == team.namespace:
            raise errors.KubeForbidden(403, "Forbidden", "the roles are missing")
        return await original(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(KubeClient, "list", listed)
    await work()
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "demo"}})
    await until(lambda: testbed.store.runs.get("run-a"))


async def test_the_watches_of_many_namespaces_leave_connections_to_calls(
    testbed: StoreTestbed, work: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They need not exist: an administrator may list and watch what is not there.
    many = tuple(f"{testbed.kube.namespace}-{number}" for number in range(20))
    own = testbed.kube
    testbed.kube = await KubeClient.connect(
        own.namespace, extra_connections=WATCHES_PER_NAMESPACE * len(many)
    )
    opened, original = set(), KubeClient._open

    async def observed(
        self: KubeClient, method: str, path: str, query: Mapping[str, str], *rest: Any, **named: Any
    ) -> Any:
        response = await original(self, method, path, query, *rest, **named)
        if "watch" in query:
            opened.add((path, query.get("labelSelector")))
        return response

    async def all_are_open() -> bool:
        return len(opened) == WATCHES_IN_LOOPS * (1 + len(many))

    monkeypatch.setattr(KubeClient, "_open", observed)
    try:
        await work(namespaces=many)
        await until(all_are_open)
        async with asyncio.timeout(180):
            await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "demo"}})
            await until(lambda: testbed.store.runs.get("run-a"))
        await work(namespaces=())
    finally:
        await testbed.kube.close()
        testbed.kube = own
