"""Which builds may start, and which wait."""

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.deployment import status
from controller.deployment.queue import last_ends, occupied_slots, startable, wait_reason
from controller.deployment.queue_view import BuildQueueView
from controller.deployment.reuse import find_building, find_built
from controller.deployment.source_key import recorded_tree, source_key
from controller.runtime.cache import ObjectCache
from crds import kinds
from crds.limits import parse_plans
from crds.objects import creation_order

ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12)


def waiting(make, name, project, age=60):
    meta = {"creationTimestamp": make.ago(age)}
    return make.deployment(name, project, built=False, phase="Pending", metadata=meta)


@given(
    entries=ENTRIES,
    most=st.integers(1, 4),
    ceilings=st.fixed_dictionaries({project: st.integers(1, 3) for project in "abc"}),
    running=st.lists(st.sampled_from("abcx"), max_size=4),
    last_ended=st.dictionaries(st.sampled_from("abc"), st.sampled_from(["2026-01-01", "2026-01-02"])),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_slots_are_shared_within_the_limits(make, config, entries, most, ceilings, running, last_ended):
    config = replace(config, max_builds=most)
    queued = [waiting(make, f"dep-{i}", project, age) for i, (project, age) in enumerate(entries)]
    occupied = {f"dep-r{i}": project for i, project in enumerate(running)}
    names = startable(queued, occupied, last_ended, ceilings, config)
    started = [d for d in queued if d.name in names]
    held = Counter([*running, *(d.project for d in started)])
    assert not started or held.total() <= most
    for project in {d.project for d in started}:
        assert held[project] <= ceilings[project]
        for other in {d.project for d in queued if d.name not in names} - {project}:
            # Who still waits below its ceiling has as many builds as any project that was given one.
            assert held[other] >= min(held[project] - 1, ceilings[other])
    for deployment in queued:
        if deployment.name in names:
            continue
        # No build waits while a slot is free, and none is overtaken by the same project.
        assert held.total() >= most or held[deployment.project] >= ceilings[deployment.project]
        own = [d for d in started if d.project == deployment.project]
        assert all(creation_order(d) < creation_order(deployment) for d in own)


@given(flood=st.integers(1, 20), others=st.integers(1, 4), most=st.integers(1, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_flood_of_one_project_delays_another_by_one_build(make, config, flood, others, most):
    """Slots end one after the other, the oldest first; each project's single build starts within a round."""
    config = replace(config, max_builds=most, max_builds_per_project=most)
    queued = [waiting(make, f"dep-a{i:02d}", "a", 1000 - i) for i in range(flood)]
    queued += [waiting(make, f"dep-z{i}", f"p{i}", 60 - i) for i in range(others)]
    slots, last_ended, order = {f"dep-r{i}": "a" for i in range(most)}, {}, []
    for moment in range(flood + others):
        last_ended[slots.pop(next(iter(slots)))] = f"{moment:03d}"
        started = [d for d in queued if d.name in startable(queued, slots, last_ended, {}, config)]
        queued = [d for d in queued if d not in started]
        slots |= {d.name: d.project for d in started}
        order += [d.project for d in started]
    first_builds = [order.index(f"p{i}") for i in range(others)]
    assert max(first_builds) < others + 1, order


def test_project_at_its_limit_does_not_block_others(make, config):
    one, two, three = (
        waiting(make, "dep-1", "a", 30),
        waiting(make, "dep-2", "b", 20),
        waiting(make, "dep-3", "c", 10),
    )
    assert startable([one, two, three], {"dep-0": "a"}, {}, {}, config) == {"dep-2"}
    assert startable([one, three], {"dep-0": "a"}, {}, {"a": 2}, replace(config, max_builds=4)) == {
        "dep-1",
        "dep-3",
    }
    assert wait_reason("a", 1, config) == (
        "Waiting in the build queue; limits: 2 builds in the installation, 1 build of project a."
    )


def test_the_end_of_a_build_is_read_from_its_deployment(make):
    def ended(name, project, time, **more):
        built = {"type": "Built", "status": "True", "reason": "Built", "lastTransitionTime": time}
        status = {"conditions": [built], "image": "i", **more}
        return make.deployment(name, project, built=False, status=status)

    started = {"buildPod": "p"}
    found = [
        ended("dep-1", "a", "2026-01-01T00:00:01Z", **started),
        ended("dep-2", "a", "2026-01-01T00:00:03Z", **started),
        ended("dep-3", "b", "2026-01-01T00:00:02Z"),
        make.deployment("dep-4", "c", built=False, status=started),
    ]
    assert last_ends(found) == {"a": "2026-01-01T00:00:03Z"}


def test_a_plan_limits_the_builds_of_its_projects(make, config):
    plans = parse_plans('{"pro": {"requests_per_minute": 1, "concurrent_runs": 1, "concurrent_builds": 2}}')
    config = replace(config, plans=plans, max_builds=4)
    known = ObjectCache()
    for project in (make.project("a", plan="pro"), make.project("b")):
        known.put(kinds.PROJECT, project.raw)
    for number in range(8):
        known.put(kinds.DEPLOYMENT, waiting(make, f"dep-{number}", "ab"[number % 2], 90 - number).raw)
    view = BuildQueueView(known, config).snapshot()
    assert (view.ceilings, view.startable) == ({"a": 2, "b": 1}, {"dep-0", "dep-1", "dep-2"})


def test_queue_is_computed_once_per_change(make, config):
    known = ObjectCache()
    for raw in (make.project("a"), make.project("b")):
        known.put(kinds.PROJECT, raw.raw)
    for number in range(20):
        known.put(kinds.DEPLOYMENT, waiting(make, f"dep-{number:02d}", "ab"[number % 2], 90 - number).raw)
    line = BuildQueueView(known, config)
    view = line.snapshot()
    assert (line.snapshot() is view, view.startable) == (True, {"dep-00", "dep-01"})
    known.put(kinds.POD, make.pod().raw)
    assert line.snapshot() is view
    building = waiting(make, "dep-00", "a", 90).raw
    known.put(kinds.DEPLOYMENT, {**building, "status": {"buildPod": "dep-00-a1"}})
    assert line.snapshot().startable == {"dep-01"}
    known.remove(kinds.PROJECT, "b")
    assert line.snapshot().startable == set()


def test_those_that_wait_for_an_identical_build_are_computed_once(make, config):
    known = ObjectCache()
    for name, reason, phase in (
        ("dep-a", status.SAME_SOURCE, "Pending"),
        ("dep-b", status.QUEUED, "Pending"),
        ("dep-c", status.SAME_SOURCE, "Failed"),
    ):
        ready = [{"type": "Ready", "status": "Unknown", "reason": reason, "message": "m"}]
        one = make.deployment(name, built=False, phase=phase, status={"conditions": ready})
        known.put(kinds.DEPLOYMENT, one.raw)
    assert BuildQueueView(known, config).snapshot().same_source == ("dep-a",)


def test_builds_and_unrecorded_pods_occupy_slots(make):
    building = make.deployment("dep-1", "a", built=False, status={"buildPod": "dep-1-a1"})
    ended = make.deployment("dep-2", "b", built=False, phase="Failed", status={"buildPod": "dep-2-a1"})
    crashed = waiting(make, "dep-3", "c")
    known = {d.name: d for d in (building, ended, crashed)}

    def pod(name, **more):
        meta = {"labels": {"crewyard.dev/deployment": name}, **more}
        return make.pod(
            f"{name}-a1", owner=f"uid-{name}", metadata={**meta, "ownerReferences": [{"uid": f"uid-{name}"}]}
        )

    pods = [pod("dep-2"), pod("dep-3"), pod("dep-gone")]
    assert occupied_slots(known.values(), pods, known) == {"dep-1": "a", "dep-3": "c"}
    stopping = [pod("dep-3", deletionTimestamp=make.ago(1))]
    assert occupied_slots(known.values(), stopping, known) == {"dep-1": "a"}


def test_reusable_deployment_has_the_same_project_and_key(make):
    def candidate(name, key="k", project="demo", built=True, age=100, **more):
        meta = {"creationTimestamp": make.ago(age), **more.pop("metadata", {})}
        return make.deployment(name, project, built=built, metadata=meta, status={"sourceKey": key}, **more)

    def always(_):
        return True

    mine = candidate("dep-z", built=False, age=1)
    none = [candidate("dep-1", "other"), candidate("dep-2", project="b"), mine]
    assert find_built(mine, "k", none, frozenset(), always) is None
    old, new, going = (
        candidate("dep-3", age=90),
        candidate("dep-4", age=80),
        candidate("dep-5", age=70, metadata={"deletionTimestamp": make.ago(1)}),
    )
    assert find_built(mine, "k", [*none, old, new, going], frozenset(), always).name == "dep-4"
    assert find_built(mine, "k", [*none, old, new], frozenset({"dep-4"}), always).name == "dep-3"
    assert find_built(mine, "k", [old, new], frozenset(), lambda one: one.name == "dep-3").name == "dep-3"
    unbuilt = [
        candidate("dep-6", built=False, age=50),
        candidate("dep-7", built=False, age=0, phase="Pending"),
    ]
    assert find_building(mine, "k", [*none, *unbuilt]).name == "dep-6"
    assert find_building(unbuilt[0], "k", [mine, unbuilt[1]]) is None
    assert find_building(mine, "k", [candidate("dep-8", built=False, phase="Failed")]) is None


def test_source_key_covers_every_input_of_an_image(make, config):
    project = make.project()
    archive = {"archive": {"upload": "upl_1", "sha256": "a" * 64}}
    one = make.deployment(built=False, source=archive)
    key = source_key(one, project, None, config)
    again = make.deployment("dep-b", built=False, source={"archive": {"upload": "upl_2", "sha256": "a" * 64}})
    assert source_key(again, project, None, config) == key
    others = [
        source_key(
            make.deployment(source={"archive": {"upload": "u", "sha256": "b" * 64}}), project, None, config
        ),
        source_key(make.deployment(source=archive, crew="x"), project, None, config),
        source_key(one, make.project(build={"secretRef": {"name": "index"}}), None, config),
        source_key(one, make.project(build={"dockerfile": "Dockerfile"}), None, config),
        source_key(one, make.project(build={"requirements": ["lxml"]}), None, config),
        source_key(one, make.project(build={"requirements": ["lxml>=5"]}), None, config),
        source_key(one, make.project(build={"secretRef": {"name": "other"}}), None, config),
        source_key(one, project, None, replace(config, service_image="another")),
        source_key(one, project, None, replace(config, base_images={"3.11": "another"})),
        source_key(make.deployment(source={"git": {"url": "u", "commit": "c"}}), project, "a" * 64, config),
    ]
    assert len({key, *others}) == len(others) + 1
    assert source_key(make.deployment(source={"archive": {"upload": "u"}}), project, None, config) is None
    assert (
        source_key(make.deployment(source={"git": {"url": "u", "commit": "c"}}), project, None, config)
        is None
    )


def test_image_is_not_reused_where_commits_must_be_signed(make, config):
    """A signed and an unsigned commit may have the same files."""
    git = {"url": "u", "verify": {"secretRef": {"name": "signers"}}}
    deployment = make.deployment(source={"git": {"url": "u", "commit": "c"}})
    assert source_key(deployment, make.project(source={"git": {"url": "u"}}), "a" * 40, config) is not None
    assert source_key(deployment, make.project(source={"git": git}), "a" * 40, config) is None


def test_recorded_tree_is_valid_only_for_the_observed_source(make):
    git = {"url": "https://example.org/x.git", "path": "a"}
    status = {"source": {"commit": "c", "tree": "t", "path": "a"}, "observedGeneration": 1}
    project = make.project(source={"git": git}, status=status)
    mine = make.deployment(source={"git": {**git, "commit": "c"}})
    assert recorded_tree(mine, project) == "t"
    assert recorded_tree(make.deployment(source={"git": {**git, "commit": "d"}}), project) is None
    assert (
        recorded_tree(make.deployment(source={"git": {**git, "path": "b", "commit": "c"}}), project) is None
    )
    newer = make.project(source={"git": git}, status=status, metadata={"generation": 2})
    assert recorded_tree(mine, newer) is None
    suspended = make.project(source={"git": {**git, "suspend": True}}, status=status)
    assert recorded_tree(mine, suspended) is None
    # The poll of the new path has failed: its generation is observed, and the record is the old one.
    record = {"commit": "c", "tree": "t", "path": "before"}
    failed = make.project(source={"git": git}, status={**status, "source": record})
    assert recorded_tree(mine, failed) is None
