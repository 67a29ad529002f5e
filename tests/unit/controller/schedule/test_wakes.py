"""Which keys a change wakes: schedules cost nothing else, and nothing else costs schedules."""

from controller.runtime import event_map
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from crds import kinds

LABELS = {"labels": {"crewyard.dev/schedule": "nightly"}}
SCHEDULES = [{"name": "nightly", "cron": "@daily"}]


async def taken(queues):
    keys = [await queues.main.get() for _ in range(queues.main.depth)]
    for key in keys:
        queues.main.done(key)
    return keys


async def test_a_project_with_schedules_wakes_them(make):
    cache = ObjectCache()
    with_schedules = make.project(schedules=SCHEDULES)
    assert event_map.schedules("demo") in event_map.keys_of(kinds.PROJECT, with_schedules.raw, cache)
    assert event_map.schedules("demo") not in event_map.keys_of(kinds.PROJECT, make.project().raw, cache)


async def test_a_recorded_tick_wakes_only_the_schedules(make):
    queues = Queues(lambda: 0.0)
    handlers = EventHandlers(ObjectCache(), queues)
    handlers.on_change(kinds.PROJECT, make.project(schedules=SCHEDULES).raw)
    await taken(queues)
    record = {"schedules": [{"name": "nightly", "lastRun": "run-a"}]}
    handlers.on_change(kinds.PROJECT, make.project(schedules=SCHEDULES, status=record).raw)
    assert await taken(queues) == [event_map.schedules("demo")]
    active = {**record, "activeDeployment": "dep-a"}
    handlers.on_change(kinds.PROJECT, make.project(schedules=SCHEDULES, status=active).raw)
    assert event_map.project("demo") in await taken(queues)


async def test_own_write_of_the_schedules_wakes_nothing(make):
    """A refused run is tried again after a pause, although its message is written."""
    queues, key = Queues(lambda: 0.0), event_map.schedules("demo")
    handlers = EventHandlers(ObjectCache(), queues)
    handlers.on_change(kinds.PROJECT, make.project(schedules=SCHEDULES).raw)
    await taken(queues)
    record = {"schedules": [{"name": "nightly", "message": "the quota is used up"}]}
    handlers.on_change(kinds.PROJECT, make.project(schedules=SCHEDULES, status=record).raw, key)
    assert await taken(queues) == []


async def test_only_the_end_of_a_scheduled_run_wakes_the_schedules(make):
    cache, key = ObjectCache(), event_map.schedules("demo")

    def keys(run, deleted=False):
        return list(event_map.keys_of(kinds.RUN, run.raw, cache, deleted))

    ended = {"phase": "Succeeded"}
    assert key not in keys(make.run(project="demo", metadata=LABELS))
    assert key in keys(make.run(project="demo", metadata=LABELS, status=ended))
    assert key in keys(make.run(project="demo", metadata=LABELS), deleted=True)
    assert key not in keys(make.run(project="demo", status=ended))
