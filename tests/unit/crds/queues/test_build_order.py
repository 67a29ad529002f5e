"""The order in which builds of several projects start."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crds.queues.build_order import QueuedBuild, fair_order

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
QUEUES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=15)
RUNNING = st.dictionaries(st.sampled_from("abcx"), st.integers(0, 4))
ENDED = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["2026-01-01", "2026-01-02"]))


def queue(entries: list[tuple[str, int]]) -> list[QueuedBuild]:
    return [
        QueuedBuild(BEGIN + timedelta(seconds=second), f"dep-{number}", project)
        for number, (project, second) in enumerate(entries)
    ]


@given(entries=QUEUES, running=RUNNING, last_ended=ENDED)
def test_each_slot_goes_to_the_project_with_the_fewest_builds(entries, running, last_ended):
    builds, held = queue(entries), Counter(running)
    order = fair_order(builds, running, last_ended)
    assert sorted(order) == sorted(builds)
    left = list(builds)
    for build in order:
        first_of_each = [min(b for b in left if b.project == p) for p in {b.project for b in left}]
        best = min(first_of_each, key=lambda b: (held[b.project], last_ended.get(b.project, ""), b))
        assert build == best
        left.remove(build)
        held[build.project] += 1


@given(entries=QUEUES, running=RUNNING, last_ended=ENDED, seed=st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_argument(entries, running, last_ended, seed):
    builds = queue(entries)
    order = fair_order(builds, running, last_ended)
    seed.shuffle(builds)
    assert fair_order(builds, running, last_ended) == order


def test_one_slot_goes_round_among_projects():
    builds = queue([("a", n) for n in range(4)] + [("b", 9), ("c", 9)])
    assert [b.project for b in fair_order(builds, {"a": 1}, {})] == ["b", "c", "a", "a", "a", "a"]
    assert [b.project for b in fair_order(builds, {}, {})] == ["a", "b", "c", "a", "a", "a"]
