"""Which namespace has a project name, and what the controller of the other one does with its Project."""

import asyncio
from datetime import UTC, datetime

from controller.project import name_taken
from controller.project_names import UNSHARED, NamespaceProjectNames, ProjectNames
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from crds import conditions, kinds
from crds.objects import Project

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def project(created, uid, version="1", name="demo"):
    metadata = {"name": name, "uid": uid, "resourceVersion": version, "creationTimestamp": created}
    return {"metadata": {**metadata, "generation": 1}, "spec": {}, "status": {}}


def of_two():
    names = ProjectNames(("a", "b"))
    return names, NamespaceProjectNames(names, "a"), NamespaceProjectNames(names, "b")


def test_the_older_project_has_the_name_in_any_order():
    older, younger = project("2026-11-21T10:00:00Z", "z"), project("2026-11-21T10:00:01Z", "a")
    for first_seen in ("a", "b"):
        names, a, b = of_two()
        for view in (a, b) if first_seen == "a" else (b, a):
            view.see(older if view is b else younger)
        assert (names.holder("demo"), a.is_taken("demo"), b.is_taken("demo")) == ("b", True, False)


def test_of_two_of_the_same_second_the_uid_decides():
    _, a, b = of_two()
    a.see(project("2026-11-21T10:00:00Z", "2"))
    b.see(project("2026-11-21T10:00:00Z", "1"))
    assert (a.is_taken("demo"), b.is_taken("demo")) == (True, False)


def test_a_deleted_project_frees_its_name_but_a_replaced_one_does_not():
    names, a, b = of_two()
    a.see(project("2026-11-21T10:00:00Z", "1"))
    b.see(project("2026-11-21T10:00:01Z", "2"))
    a.forget("demo", "another uid")
    assert b.is_taken("demo")
    a.forget("demo", "1")
    assert not b.is_taken("demo")
    b.forget("demo")
    assert names.holder("demo") is None


def test_one_namespace_has_every_name_and_waits_for_nothing():
    names = ProjectNames(("a",))
    view = NamespaceProjectNames(names, "a")
    view.see(project("2026-11-21T10:00:00Z", "1"))
    assert not view.is_taken("demo") and not UNSHARED.is_taken("demo")
    asyncio.run(asyncio.wait_for(names.wait_complete(), 120))


def test_names_are_certain_only_when_every_namespace_is_listed():
    async def scene():
        names, _, _ = of_two()
        waiting = asyncio.create_task(names.wait_complete())
        names.mark_listed("a")
        names.mark_listed("a")
        await asyncio.sleep(0)
        assert not waiting.done()
        names.mark_listed("b")
        await asyncio.wait_for(waiting, 120)

    asyncio.run(scene())


def test_a_taken_or_freed_name_enqueues_the_other_project():
    async def scene():
        names, a, b = of_two()
        queues = {"a": Queues(lambda: 0.0), "b": Queues(lambda: 0.0)}
        handlers = {
            view.namespace: EventHandlers(ObjectCache(), queues[view.namespace], view) for view in (a, b)
        }
        for namespace, each in handlers.items():
            names.subscribe(namespace, each.on_name_change)
        handlers["b"].on_change(kinds.PROJECT, project("2026-11-21T10:00:01Z", "2"))
        key = await queues["b"].main.get()
        queues["b"].main.done(key)
        assert (key.plural, key.name, queues["b"].main.depth) == ("projects", "demo", 0)
        handlers["a"].on_change(kinds.PROJECT, project("2026-11-21T10:00:00Z", "1", "2"))
        assert queues["b"].main.depth == 1
        key = await queues["b"].main.get()
        queues["b"].main.done(key)
        handlers["a"].on_delete(kinds.PROJECT, project("2026-11-21T10:00:00Z", "1", "3"))
        assert queues["b"].main.depth == 1

    asyncio.run(scene())


def test_the_status_of_a_project_without_its_name_says_so_once():
    found = Project(project("2026-11-21T10:00:00Z", "1"))
    decision = name_taken.decide(found, NOW)
    ready = conditions.find(decision.status["conditions"], conditions.READY)
    assert (ready["status"], ready["reason"]) == ("False", "NameTaken")
    assert [event.reason for event in decision.events] == ["NameTaken"]
    again = name_taken.decide(Project({**found.raw, "status": decision.status}), NOW)
    assert (again.status, again.events) == (decision.status, ())
