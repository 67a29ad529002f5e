"""Which runs get a pod: the plan is never exceeded, in order, and no run is lost."""

from hypothesis import given
from hypothesis import strategies as st

from controller.run.quota import LivePods, admit, count_live, queue_order
from crds.objects import Run


def run(index: int, second: int) -> Run:
    metadata = {
        "name": f"run-{index}",
        "uid": f"uid-{index}",
        "creationTimestamp": f"2026-11-21T10:00:{second:02d}Z",
    }
    return Run({"metadata": metadata, "spec": {}, "status": {}})


@given(
    # Few seconds for many runs: the usual order is that of names within one second.
    st.lists(st.integers(0, 3), max_size=20),
    st.sets(st.integers(0, 40), max_size=12),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_first_queued_runs_get_the_free_slots(seconds, running, limit, chance):
    candidates = [run(index, second) for index, second in enumerate(seconds)]
    chance.shuffle(candidates)
    occupied = {f"uid-{index}" for index in running}
    decided = admit(candidates, LivePods(len(running), frozenset(occupied)), limit)
    assert sorted(r.name for r in (*decided.admitted, *decided.queued)) == sorted(
        r.name for r in candidates if r.uid not in occupied
    )
    assert len(decided.admitted) <= max(0, limit - len(running))
    if decided.queued:
        assert len(running) + len(decided.admitted) >= limit
    assert all(queue_order(a) < queue_order(b) for a in decided.admitted for b in decided.queued)


def test_pod_holds_its_slot_until_its_run_reports_or_ends():
    found = count_live(["run-1", "run-4", "run-5"], lambda name: name == "run-5", ["uid-4"])
    assert found == LivePods(2, frozenset({"uid-4"}))


def test_the_older_run_comes_first():
    """The property above sorts by the same function, so it would not notice another order."""
    younger, older, same = run(1, 5), run(2, 3), run(3, 3)
    assert sorted([younger, same, older], key=queue_order) == [older, same, younger]
