"""Which watches are missing, by the names of Kopf's tasks; the priority of what Kopf lists."""

import asyncio

import pytest

from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.kopf_watch import WATCHED, _handler, missing_watchers
from controller.runtime.queues import Queues
from crds import kinds


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [(None, []), (("runs", "team-a"), ["runs"]), (("pods", "crews"), ["pods"])],
)
def test_each_kind_is_watched_in_each_namespace(left_out, missing):
    async def scene():
        tasks = [
            asyncio.create_task(
                asyncio.sleep(60), name=f"watcher for {kind.plural}.{kind.version}.{kind.group}@{namespace}"
            )
            for kind in WATCHED
            for namespace in ("crews", "team-a")
            if (kind.plural, namespace) != left_out
        ]
        assert missing_watchers(("crews", "team-a")) == missing
        assert missing_watchers(("crews", "team-b")) == [kind.plural for kind in WATCHED]
        for task in tasks:
            task.cancel()

    asyncio.run(scene())


async def test_objects_of_events_come_before_listed_ones(make):
    queues = Queues(lambda: 0.0)
    handle = _handler(kinds.RUN, {"crews": EventHandlers(ObjectCache(), queues)})
    for name, kind_of_event in (("run-a", None), ("run-b", "ADDED")):
        raw = make.run(name).raw
        await handle(
            {"type": kind_of_event, "object": {**raw, "metadata": {**raw["metadata"], "namespace": "crews"}}}
        )
    assert (await queues.main.get()).name == "run-b"
