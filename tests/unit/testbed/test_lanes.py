"""Groups of test files, and the lock between tests of the installed service."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lanes import FREE, HERE, LANES, ORDER, group, lane, rank, service_lock


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("e2e/runs/test_runs.py", "runs"),
        ("e2e/docs/test_demo.py", "runs"),
        ("e2e/builds/test_reuse.py", "builds"),
        ("e2e/builds/test_build_queue.py", "node"),
        ("e2e/isolation/test_hostile.py", "node"),
        ("security/test_canary.py", "node"),
        ("security/test_search.py", "security/test_search.py"),
        ("e2e/docs/test_documentation_site.py", "e2e/docs/test_documentation_site.py"),
        ("cluster/api/test_accept.py", "cluster/api/test_accept.py"),
        ("clients/test_receiver.py", "clients"),
    ],
)
def test_tests_of_the_service_run_in_lanes_and_others_by_file(name: str, expected: str) -> None:
    assert group(HERE / name) == expected


@pytest.mark.parametrize("data", [os.urandom(8)])
def test_all_workers_collect_the_same_names(data: bytes, request: pytest.FixtureRequest) -> None:
    assert len(data) == 8 and request.node.name == "test_all_workers_collect_the_same_names[data]"


def test_the_attacks_on_the_node_share_a_lane() -> None:
    attacks = [*HERE.glob("e2e/isolation/test_hostile*.py"), HERE / "e2e/isolation/test_fences.py"]
    assert len(attacks) == 3 and {lane(path) for path in attacks} == {"node"}


def test_every_file_has_a_place_in_the_order_behind_the_lanes() -> None:
    named = [*FREE, *ORDER]
    assert [name for name in named if not (HERE / name).exists()] == []
    files = list(HERE.rglob("test_*.py"))
    assert [path for path in files if rank(path) == len(ORDER)] == []
    last = max(rank(path) for path in files if lane(path))
    assert all(rank(path) >= last for path in files if not lane(path))
    assert set(LANES) == {lane(path) for path in files} - {None}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The lock files of this test alone."""
    monkeypatch.setenv("CREWYARD_STATE", str(tmp_path))
    yield


def hold(exclusive: bool, held: threading.Event, release: threading.Event) -> threading.Thread:
    """Hold the lock in a thread: `held` is set then."""

    def work() -> None:
        with service_lock(exclusive):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_two_tests_hold_the_service_together(state: None) -> None:
    held, release = threading.Event(), threading.Event()
    first = hold(False, held, release)
    assert held.wait(60)
    with service_lock(exclusive=False):
        release.set()
    first.join(60)


def test_an_exclusive_test_runs_alone(state: None) -> None:
    events = [threading.Event() for _ in range(6)]
    held, release = events[:3], events[3:]
    threads = [hold(False, held[0], release[0])]
    assert held[0].wait(60)
    threads.append(hold(True, held[1], release[1]))
    assert not held[1].wait(0.2)
    release[0].set()
    assert held[1].wait(60)
    threads.append(hold(False, held[2], release[2]))
    assert not held[2].wait(0.2)
    release[1].set()
    assert held[2].wait(60)
    release[2].set()
    for thread in threads:
        thread.join(60)
