"""Who gets a pod: the plan is never exceeded, first in is first out, nothing is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from controller.run.admit import admit, live, place
from crds.objects import Pod, Run


def run(index: int, second: int) -> Run:
    metadata = {
        "name": f"run-{index}",
        "uid": f"uid-{index}",
        "creationTimestamp": f"2026-11-21T10:00:{second:02d}Z",
    }
    return Run({"metadata": metadata, "spec": {}, "status": {}})


def pod(index: int, phase: str = "Running") -> Pod:
    metadata = {"name": f"run-{index}", "uid": f"p{index}", "ownerReferences": [{"uid": f"uid-{index}"}]}
    return Pod({"metadata": metadata, "status": {"phase": phase}})


@given(
    st.lists(st.integers(0, 59), max_size=20),
    st.sets(st.integers(0, 40), max_size=12),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_the_first_in_get_the_free_places(seconds, running, limit, chance):
    candidates = [run(index, second) for index, second in enumerate(seconds)]
    chance.shuffle(candidates)
    pods = [pod(index) for index in running]
    decided = admit(candidates, pods, limit)
    taken = {uid for p in pods for uid in p.owner_uids}
    assert sorted(r.name for r in (*decided.admitted, *decided.queued)) == sorted(
        r.name for r in candidates if r.uid not in taken
    )
    assert len(decided.admitted) <= max(0, limit - len(pods))
    if decided.queued:
        assert len(pods) + len(decided.admitted) >= limit
    assert all(place(a) < place(b) for a in decided.admitted for b in decided.queued)


def test_a_pod_takes_its_place_until_it_is_finished_or_its_run_reports_or_ends():
    pods = [pod(1), pod(2, "Succeeded"), pod(3, "Failed"), pod(4, "Pending"), pod(5)]
    assert [p.name for p in live(pods, lambda name: name == "run-5")] == ["run-1", "run-4"]
