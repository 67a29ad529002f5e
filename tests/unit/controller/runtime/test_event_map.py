"""What is looked at again after a change."""

import pytest

from controller.runtime import event_map
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from crds import kinds


def test_new_project_enqueues_its_waiting_objects(make):
    known = ObjectCache()
    for deployment in (
        make.deployment("dep-a", built=False),
        make.deployment("dep-b"),
        make.deployment("dep-c", built=False, phase="Failed"),
        make.deployment("dep-d", project="other", built=False),
    ):
        known.put(kinds.DEPLOYMENT, deployment.raw)
    known.put(kinds.RUN, make.run("run-a", project="demo").raw)
    keys = set(event_map.keys_of(kinds.PROJECT, make.project().raw, known))
    assert keys >= {event_map.project("demo"), event_map.deployment("dep-a"), event_map.run("run-a")}
    assert not keys & {event_map.deployment(name) for name in ("dep-b", "dep-c", "dep-d")}


def test_change_of_a_project_or_deployment_enqueues_only_its_runs(make):
    known = ObjectCache()
    for run in (
        make.run("run-a", project="demo"),
        make.run("run-b", deployment="dep-a"),
        make.run("run-c", project="other"),
        make.run("run-d", deployment="dep-d"),
        make.run("run-e", status={"project": "demo", "deployment": "dep-a", "pod": {"name": "run-e"}}),
    ):
        known.put(kinds.RUN, run.raw)
    of_project = event_map.keys_of(kinds.PROJECT, make.project().raw, known)
    assert {key.name for key in of_project if key.plural == "runs"} == {"run-a"}
    of_deployment = event_map.keys_of(kinds.DEPLOYMENT, make.deployment("dep-a").raw, known)
    assert {key.name for key in of_deployment if key.plural == "runs"} == {"run-b"}


@pytest.mark.parametrize(("warm", "active", "expected"), [(1, "dep-a", 1), (0, "dep-a", 0), (1, "dep-b", 0)])
def test_the_active_deployment_enqueues_the_pods_that_wait_for_runs(make, warm, active, expected):
    """The Project's status may name it before the cache has its image."""
    known = ObjectCache()
    known.put(kinds.PROJECT, make.project(run={"warm": warm}, status={"activeDeployment": active}).raw)
    keys = list(event_map.keys_of(kinds.DEPLOYMENT, make.deployment("dep-a").raw, known))
    assert keys.count(event_map.warm("demo")) == expected


async def take_all(queues):
    """Return the keys that are ready in the main queue."""
    keys = [await queues.main.get() for _ in range(queues.main.depth)]
    for key in keys:
        queues.main.done(key)
    return keys


async def test_object_first_read_by_a_reconcile_enqueues_the_others(make):
    lanes = Queues(lambda: 0.0)
    observer = EventHandlers(ObjectCache(), lanes)
    deployment = make.deployment("dep-a")
    observer.on_change(kinds.DEPLOYMENT, deployment.raw, event_map.deployment("dep-a"))
    assert await take_all(lanes) == [event_map.project("demo")]
    observer.on_change(kinds.DEPLOYMENT, deployment.raw)
    assert await take_all(lanes) == []


async def test_deleted_pod_frees_its_slot_without_its_run(make):
    lanes, known = Queues(lambda: 0.0), ObjectCache()
    observer, pod = EventHandlers(known, lanes), make.pod()
    observer.on_change(kinds.POD, pod.raw)
    assert await take_all(lanes) == [event_map.run("run-a")]
    # A list that shows it no more gives its last version, which was alive.
    observer.on_delete(kinds.POD, pod.raw)
    assert set(await take_all(lanes)) == {event_map.run("run-a"), event_map.admission("demo")}
    assert known.get(kinds.POD, "run-a") is None
