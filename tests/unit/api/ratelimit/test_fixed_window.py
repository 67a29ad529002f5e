"""Fixed windows in memory: counts and eviction."""

from hypothesis import given
from hypothesis import strategies as st

from api.ratelimit import fixed_window
from api.ratelimit.fixed_window import FixedWindows


class WindowClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_window_starts_with_its_first_request_and_expires():
    clock = WindowClock()
    counted = FixedWindows(clock)
    assert counted.peek("a") == (0, 1000.0)
    assert counted.hit("a", 60) == (1, 1060.0)
    clock.now = 1059.9
    assert counted.hit("a", 60) == (2, 1060.0)
    assert counted.peek("a") == (2, 1060.0)
    assert counted.hit("b", 60) == (1, 1119.9)
    clock.now = 1060.0
    assert counted.peek("a") == (0, 1060.0)
    assert counted.hit("a", 60) == (1, 1120.0)


def test_a_clock_that_is_set_back_starts_a_window():
    clock = WindowClock()
    counted = FixedWindows(clock)
    counted.hit("a", 60)
    clock.now -= 900
    assert counted.peek("a") == (0, 100.0)
    assert counted.hit("a", 60) == (1, 160.0)


def test_expired_windows_are_evicted():
    clock = WindowClock()
    counted = FixedWindows(clock)
    for number in range(500):
        counted.hit(f"address:{number}", 60)
    assert len(counted) == 500
    clock.now += 61
    counted.hit("address:new", 60)
    assert len(counted) == 1


def test_oldest_windows_are_evicted_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(fixed_window, "MAX_WINDOWS", 3)
    counted = FixedWindows(WindowClock())
    for name in "abcd":
        counted.hit(name, 60)
    assert len(counted) == 3
    assert [counted.peek(name)[0] for name in "abcd"] == [0, 1, 1, 1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 50)), max_size=60))
def test_every_request_counts_for_one_window(requests):
    clock, began = WindowClock(), dict[str, float]()
    counted, expected = FixedWindows(clock), dict[str, int]()
    for name, pause in requests:
        clock.now += pause
        if name not in began or clock.now >= began[name] + 60:
            began[name], expected[name] = clock.now, 0
        expected[name] += 1
        assert counted.hit(name, 60) == (expected[name], began[name] + 60)
