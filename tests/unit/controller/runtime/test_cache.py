"""The object cache: the greatest resourceVersion wins, in any order of arrival."""

import itertools

import pytest

from controller.runtime import event_map
from controller.runtime.cache import MAX_DELETED_PODS, ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from crds import kinds
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT, LABEL_RUN, LABEL_WARM, LABEL_WARM_BUILDER

CACHED_KINDS = [*kinds.OWN_KINDS, kinds.POD]


def version(number, name="x", uid="uid-x", **fields):
    metadata = {"name": name, "uid": uid, "resourceVersion": str(number), "labels": {"number": str(number)}}
    return {"metadata": metadata, "spec": {}, "status": {}, **fields}


def cached_version(cache, kind, name="x"):
    return cache.get(kind, name)["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", CACHED_KINDS, ids=lambda kind: kind.plural)
@pytest.mark.parametrize("order", list(itertools.permutations([9, 10, 100])))
def test_greatest_version_is_kept_in_every_order(kind, order):
    cache, newest = ObjectCache(), 0
    for number in order:
        before = cache.changes(kind)
        assert cache.put(kind, version(number)) is (number > newest)
        assert cache.changes(kind) == before + (number > newest)
        newest = max(newest, number)
        assert cached_version(cache, kind) == str(newest)
    assert cache.put(kind, version(newest)) is False
    assert (cache.count(kind), [raw["metadata"]["name"] for raw in cache.all(kind)]) == (1, ["x"])


def test_runs_are_found_by_their_newest_project_and_deployment():
    cache = ObjectCache()

    def found():
        runs = [cache.of_project(kinds.RUN, name) for name in (None, "demo")]
        return [
            [raw["metadata"]["name"] for raw in listed] for listed in (*runs, cache.runs_of_deployment("d"))
        ]

    cache.put(kinds.RUN, version(1, spec={"deployment": "d"}))
    assert found() == [["x"], [], ["x"]]
    cache.put(kinds.RUN, version(2, spec={"deployment": "d"}, status={"project": "demo", "deployment": "d"}))
    assert found() == [[], ["x"], ["x"]]
    cache.put(kinds.RUN, version(3, "y", spec={"project": "demo"}))
    assert found() == [[], ["x", "y"], ["x"]]
    cache.remove(kinds.RUN, "x")
    assert found() == [[], ["y"], []]


def warm_pod(number, name, run=None, phase="Running"):
    pod = version(number, name, f"uid-{name}", status={"phase": phase})
    pod["metadata"]["labels"] = {LABEL_WARM: "a", **({LABEL_RUN: run} if run else {})}
    return pod


def test_pods_of_a_run_follow_their_labels():
    cache = ObjectCache()

    def found(run):
        return [pod["metadata"]["name"] for pod in cache.pods_of_run(run)]

    cache.put(kinds.POD, warm_pod(1, "warm-a"))
    assert found("run-a") == []
    cache.put(kinds.POD, warm_pod(2, "warm-a", "run-a", "Failed"))
    cache.put(kinds.POD, warm_pod(3, "warm-b", "run-a"))
    cache.put(kinds.POD, version(4, "run-a"))
    assert found("run-a") == ["run-a", "warm-b", "warm-a"]
    cache.put(kinds.POD, warm_pod(5, "warm-b", "run-b"))
    assert (found("run-a"), found("run-b")) == (["run-a", "warm-a"], ["warm-b"])
    cache.remove(kinds.POD, "warm-a")
    cache.remove(kinds.POD, "warm-b")
    assert (found("run-a"), found("run-b"), cache.warm_pods()) == (["run-a"], [], [])


def test_project_is_enqueued_while_pods_wait_for_its_builds():
    cache = ObjectCache()
    project = version(1, "demo")
    pod = version(2, "warm-demo-a1")
    pod["metadata"]["labels"] = {LABEL_WARM_BUILDER: "a", LABEL_PROJECT: "demo"}

    def is_enqueued():
        return event_map.builders("demo") in event_map.keys_of(kinds.PROJECT, project, cache)

    assert not is_enqueued()
    cache.put(kinds.POD, pod)
    assert is_enqueued()
    bound = version(3, "warm-demo-a1")
    bound["metadata"]["labels"] = {**pod["metadata"]["labels"], LABEL_DEPLOYMENT: "dep-a"}
    cache.put(kinds.POD, bound)
    assert not is_enqueued()


def test_older_version_enqueues_nothing():
    cache, queues = ObjectCache(), Queues(lambda: 0.0)
    handlers = EventHandlers(cache, queues)
    handlers.on_change(kinds.PROJECT, version(10))
    assert queues.main.depth > 0
    queues = Queues(lambda: 0.0)
    EventHandlers(cache, queues).on_change(kinds.PROJECT, version(9))
    assert (queues.main.depth, queues.sources.depth, queues.reports.depth) == (0, 0, 0)
    EventHandlers(cache, queues).on_change(kinds.PROJECT, version(11), event_map.project("x"))
    assert queues.main.depth + queues.sources.depth > 0


def test_only_the_object_with_that_uid_is_evicted():
    cache = ObjectCache()
    cache.put(kinds.RUN, version(1))
    assert cache.remove(kinds.RUN, "other") is False
    assert cache.remove(kinds.RUN, "x", "uid-of-another") is False
    assert cache.get(kinds.RUN, "x") is not None
    before = cache.changes(kinds.RUN)
    assert cache.remove(kinds.RUN, "x", "uid-x") is True
    assert (cache.get(kinds.RUN, "x"), cache.changes(kinds.RUN)) == (None, before + 1)
    # A new object may have the name and any version.
    assert cache.put(kinds.RUN, version(1, uid="uid-y")) is True
    assert cache.remove(kinds.RUN, "x") is True
    assert cache.deleted_pod("uid-x") is None


def test_the_last_deleted_pods_are_kept():
    cache = ObjectCache()
    for number in range(MAX_DELETED_PODS + 2):
        cache.put(kinds.POD, version(1, f"pod-{number}", f"uid-{number}"))
        cache.remove(kinds.POD, f"pod-{number}")
    kept = [number for number in range(MAX_DELETED_PODS + 2) if cache.deleted_pod(f"uid-{number}")]
    assert kept == list(range(2, MAX_DELETED_PODS + 2))


@pytest.mark.parametrize("number", [10, 11])
def test_stale_object_is_listed_but_not_returned(number):
    cache = ObjectCache()
    cache.mark_stale(kinds.DEPLOYMENT, "x")
    assert cache.put(kinds.DEPLOYMENT, version(10)) is True
    assert cached_version(cache, kinds.DEPLOYMENT) == "10"
    cache.mark_stale(kinds.DEPLOYMENT, "x")
    assert cache.get(kinds.DEPLOYMENT, "x") is None
    assert [raw["metadata"]["name"] for raw in cache.all(kinds.DEPLOYMENT)] == ["x"]
    assert cache.put(kinds.DEPLOYMENT, version(9)) is False
    assert cache.get(kinds.DEPLOYMENT, "x") is None
    assert cache.put(kinds.DEPLOYMENT, version(number)) is True
    assert cached_version(cache, kinds.DEPLOYMENT) == str(number)
    assert cache.put(kinds.DEPLOYMENT, version(number)) is False


def test_removed_object_is_not_stale_when_it_comes_back():
    cache = ObjectCache()
    cache.put(kinds.DEPLOYMENT, version(10))
    cache.mark_stale(kinds.DEPLOYMENT, "x")
    assert cache.remove(kinds.DEPLOYMENT, "x") is True
    cache.put(kinds.DEPLOYMENT, version(8, uid="uid-y"))
    assert cached_version(cache, kinds.DEPLOYMENT) == "8"
