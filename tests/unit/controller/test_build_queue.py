"""Who may begin a build, and who waits at which position."""

import re
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.deployment.queue import busy, judge, place
from controller.deployment.source_key import recorded_tree, source_key
from controller.deployment.twin import building_twin, built_twin

ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12)


def waiting(make, name, project, age=60):
    meta = {"creationTimestamp": make.ago(age)}
    return make.deployment(name, project, built=False, phase="Pending", metadata=meta)


@given(entries=ENTRIES, most=st.integers(1, 3), most_each=st.integers(1, 2), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_queue_is_fair_within_the_caps(make, config, entries, most, most_each, data):
    config = replace(config, max_builds=most, max_builds_per_project=most_each)
    line = [waiting(make, f"dep-{i}", project, age) for i, (project, age) in enumerate(entries)]
    running = data.draw(st.integers(0, most))
    taken = {f"dep-r{i}": f"p{i}" for i in range(running)}
    said = {d.name: judge(d, line, taken, config) for d in line}
    begin = [d for d in line if not said[d.name]]
    assert len(begin) + running <= most
    assert all(sum(d.project == p for d in begin) <= most_each for p in "abc")
    waits = sorted((d for d in line if said[d.name]), key=place)
    for position, deployment in enumerate(waits, 1):
        found = re.match(r"Position (\d+) of (\d+) in the queue of builds: ", said[deployment.name])
        assert (int(found[1]), int(found[2])) == (position, len(waits))
    # Nobody waits although there is room for it, and nobody is overtaken by the same project.
    for deployment in waits:
        own = [d for d in begin if d.project == deployment.project]
        assert len(begin) + running == most or len(own) == most_each
        assert all(place(d) < place(deployment) for d in own)


def test_a_project_at_its_cap_holds_up_nobody_behind_it(make, config):
    first, second, third = (
        waiting(make, "dep-1", "a", 30),
        waiting(make, "dep-2", "b", 20),
        waiting(make, "dep-3", "c", 10),
    )
    line, taken = [first, second, third], {"dep-0": "a"}
    assert judge(first, line, taken, config) == (
        "Position 1 of 2 in the queue of builds: project a has 1 build at once."
    )
    assert judge(second, line, taken, config) == ""
    assert judge(third, line, taken, config) == (
        "Position 2 of 2 in the queue of builds: the installation has 2 builds at once."
    )


def test_places_are_taken_by_what_builds_and_by_pods_that_were_not_recorded(make):
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
    assert busy(known.values(), pods, known) == {"dep-1": "a", "dep-3": "c"}
    stopping = [pod("dep-3", deletionTimestamp=make.ago(1))]
    assert busy(known.values(), stopping, known) == {"dep-1": "a"}


def test_a_twin_is_of_the_same_project_and_key(make):
    def twin(name, key="k", project="demo", built=True, age=100, **more):
        meta = {"creationTimestamp": make.ago(age), **more.pop("metadata", {})}
        return make.deployment(name, project, built=built, metadata=meta, status={"sourceKey": key}, **more)

    mine = twin("dep-z", built=False, age=1)
    none = [twin("dep-1", "other"), twin("dep-2", project="b"), mine]
    assert built_twin(mine, "k", none, frozenset()) is None
    old, new, going = (
        twin("dep-3", age=90),
        twin("dep-4", age=80),
        twin("dep-5", age=70, metadata={"deletionTimestamp": make.ago(1)}),
    )
    assert built_twin(mine, "k", [*none, old, new, going], frozenset()).name == "dep-4"
    assert built_twin(mine, "k", [*none, old, new], frozenset({"dep-4"})).name == "dep-3"
    unbuilt = [twin("dep-6", built=False, age=50), twin("dep-7", built=False, age=0, phase="Pending")]
    assert building_twin(mine, "k", [*none, *unbuilt]).name == "dep-6"
    assert building_twin(unbuilt[0], "k", [mine, unbuilt[1]]) is None
    assert building_twin(mine, "k", [twin("dep-8", built=False, phase="Failed")]) is None


def test_the_key_holds_all_that_goes_into_an_image(make, config):
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


def test_a_recorded_tree_counts_only_for_what_was_looked_at(make):
    git = {"url": "https://example.org/x.git", "path": "a"}
    status = {"source": {"commit": "c", "tree": "t"}, "observedGeneration": 1}
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
