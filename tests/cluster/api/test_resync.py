"""What no watch ever told is in the rows after a look at the lists."""

from datetime import UTC, datetime

from api.projection.resync import look
from api.v1.runs.create import RunRequest, accept_run
from crds.kinds import PROJECT, RUN
from tests.cluster.api.conftest import Yard


async def accept(yard: Yard) -> str:
    request = RunRequest("demo", "dep-a", {})
    return (await accept_run(yard.store, yard.kube, request, datetime.now(UTC))).name


async def status(yard: Yard, run: str) -> str | None:
    row = await yard.store.runs.get(run)
    return row.status if row else None


async def test_a_look_finds_what_appeared_changed_ended_and_went(yard: Yard) -> None:
    ended, gone, stays, renewed = [await accept(yard) for _ in range(4)]
    await yard.kube.create(PROJECT, {"metadata": {"name": "other"}, "spec": {}})
    await yard.kube.create(RUN, {"metadata": {"name": "run-by-hand"}, "spec": {"project": "demo"}})
    await yard.end(ended)
    await yard.kube.delete(RUN, gone)
    before = await yard.store.runs.get(renewed)
    await yard.kube.delete(RUN, renewed)
    await yard.kube.create(RUN, {"metadata": {"name": renewed}, "spec": {"project": "demo"}})
    # Nobody watches.
    for _ in range(2):
        await look(yard.store, yard.kube)
        assert await yard.store.projects.get("other") is not None
        found = [await status(yard, run) for run in ("run-by-hand", ended, gone, stays, renewed)]
        assert found == ["pending", "succeeded", "canceled", "pending", "canceled"]
    now = await yard.store.runs.get(renewed)
    assert before is not None and now is not None and now.uid == before.uid
    await yard.kube.delete(PROJECT, "other")
    await look(yard.store, yard.kube)
    assert await yard.store.projects.get("other") is None
