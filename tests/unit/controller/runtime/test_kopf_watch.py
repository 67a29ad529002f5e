"""Which watches are missing, by the names of Kopf's tasks."""

import asyncio

import pytest

from controller.runtime.kopf_watch import WATCHED, missing_watchers


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
