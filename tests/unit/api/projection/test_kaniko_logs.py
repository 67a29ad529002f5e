"""Lines of Kaniko's log, when the log can be read, and how long it is followed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.maintenance.garbage import delete_garbage
from api.projection.kaniko_logs import (
    MAX_LINE_BYTES,
    MAX_PARALLEL_LOGS,
    KanikoLogs,
    container_with_log,
    split_lines,
)
from api.store.store import Store
from crds import names
from crds.kinds import Kind
from crds.objects import Deployment, Pod
from kube import errors
from tests.unit.api.store import builders


async def split_at(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    bounds = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(bounds):
        yield data[start:end]


@given(text=st.text(alphabet="ab\nü"), cuts=st.lists(st.integers(0, 100)))
async def test_split_lines_is_independent_of_chunks(text: str, cuts: list[int]) -> None:
    lines = [line async for batch in split_lines(split_at(text.encode(), cuts)) for line in batch]
    expected = text if text.endswith("\n") or not text else text + "\n"
    assert "".join(lines) == expected
    assert all(line.count("\n") == 1 for line in lines)


async def test_endless_line_is_truncated() -> None:
    lines = [
        batch
        async for batch in split_lines(
            split_at(b"x" * (10 * MAX_LINE_BYTES), [MAX_LINE_BYTES * n for n in range(10)])
        )
    ]
    assert max(len(line) for batch in lines for line in batch) <= MAX_LINE_BYTES + 1


async def test_long_line_is_truncated_to_one_line() -> None:
    log = b"a\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb\n"
    for size in (len(log), 4096, MAX_LINE_BYTES + 7):
        cuts = list(range(0, len(log), size))
        lines = [line async for batch in split_lines(split_at(log, cuts)) for line in batch]
        assert lines == ["a\n", "x" * MAX_LINE_BYTES + "\n", "b\n"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"running": {}}, True), ({"terminated": {"exitCode": 1}}, True), ({"waiting": {}}, False), ({}, False)],
)
@pytest.mark.parametrize("name", ["kaniko", "install"])
def test_log_is_read_once_its_container_runs(state: dict[str, Any], expected: bool, name: str) -> None:
    pod = Pod({"status": {"initContainerStatuses": [{"name": "source"}, {"name": name, "state": state}]}})
    assert container_with_log(pod) == (name if expected else "")
    assert not container_with_log(Pod({"status": {"containerStatuses": [{"name": "push", "state": state}]}}))


class Cluster:
    """An apiserver with one Deployment, which reads the log of a pod by its name."""

    def __init__(self) -> None:
        self.logs: dict[str, Callable[[], AsyncIterator[bytes]]] = {}
        self.deployment: Deployment | None = builders.deployment()

    async def get(self, _kind: Kind, _name: str) -> Any:
        return self.deployment.raw if self.deployment else None

    async def pod_log(self, pod: str, _container: str, follow: bool) -> AsyncIterator[bytes]:
        async for chunk in self.logs[pod]():
            yield chunk


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def kaniko_logs(store: Store, cluster: Cluster) -> AsyncIterator[KanikoLogs]:
    await builders.add_demo_project(store)
    opened = KanikoLogs(store, cluster)  # type: ignore[arg-type]
    yield opened
    await opened.close()


async def follow(kaniko_logs: KanikoLogs, pod: str) -> asyncio.Task[None]:
    """Report a pod of the Deployment dep-a; return the task that follows its log."""
    owner = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Deployment", "name": "dep-a"}
    metadata = {"name": pod, "uid": pod, "labels": {names.LABEL_DEPLOYMENT: "dep-a"}}
    metadata["ownerReferences"] = [owner | {"uid": "uid-of-dep-a"}]
    status = {"initContainerStatuses": [{"name": "kaniko", "state": {"running": {}}}]}
    await kaniko_logs.projection.apply({"metadata": metadata, "status": status})
    return kaniko_logs._tasks[pod][1]


async def test_a_log_is_read_after_a_long_outage_and_unexpected_errors(
    store: Store, kaniko_logs: KanikoLogs, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))
    failures = [errors.KubeUnavailable(503, "ServiceUnavailable", "not now"), ValueError("unexpected")] * 15

    async def after_outage() -> AsyncIterator[bytes]:
        if failures:
            raise failures.pop()
        yield b"one\ntwo\n"

    cluster.logs["pod"] = after_outage
    await asyncio.wait_for(await follow(kaniko_logs, "pod"), 30)
    assert (await store.build_logs.read("dep-a.uid-of-dep-a")).text == "one\ntwo\n"


async def test_unreadable_logs_do_not_block_another(
    store: Store, kaniko_logs: KanikoLogs, cluster: Cluster
) -> None:
    async def unreadable() -> AsyncIterator[bytes]:
        raise errors.KubeUnavailable(503, "ServiceUnavailable", "not now")
        yield b""

    async def readable() -> AsyncIterator[bytes]:
        yield b"one\n"

    blocked = [f"pod-{number}" for number in range(MAX_PARALLEL_LOGS)]
    cluster.logs |= {**dict.fromkeys(blocked, unreadable), "pod": readable}
    others = [await follow(kaniko_logs, pod) for pod in blocked]
    await asyncio.wait_for(await follow(kaniko_logs, "pod"), 30)
    assert not any(task.done() for task in others)
    assert (await store.build_logs.read("dep-a.uid-of-dep-a")).text == "one\n"


async def collect_garbage(store: Store) -> None:
    while await delete_garbage(store):
        pass


@pytest.mark.parametrize("recreated", [False, True])
async def test_last_lines_bring_no_deleted_log_back(
    store: Store, kaniko_logs: KanikoLogs, cluster: Cluster, recreated: bool
) -> None:
    async def log() -> AsyncIterator[bytes]:
        await store.deployments.remove("dep-a", "uid-of-dep-a")
        await collect_garbage(store)
        cluster.deployment = None
        if recreated:
            cluster.deployment = builders.deployment()
            cluster.deployment.raw["metadata"]["uid"] = "another"
        yield b"one\n"
        yield b"two\n"

    cluster.logs["pod"] = log
    await asyncio.wait_for(await follow(kaniko_logs, "pod"), 30)
    await collect_garbage(store)
    assert (await store.build_logs.read("dep-a.uid-of-dep-a")).text == ""


async def test_log_before_deployment_is_indexed_stays(
    store: Store, kaniko_logs: KanikoLogs, cluster: Cluster
) -> None:
    await store.deployments.remove("dep-a", "uid-of-dep-a")
    await collect_garbage(store)

    async def log() -> AsyncIterator[bytes]:
        yield b"one\n"

    cluster.logs["pod"] = log
    await asyncio.wait_for(await follow(kaniko_logs, "pod"), 30)
    await collect_garbage(store)
    assert (await store.build_logs.read("dep-a.uid-of-dep-a")).text == "one\n"
