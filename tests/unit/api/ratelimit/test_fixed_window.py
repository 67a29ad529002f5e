"""Fixed windows in memory: what they count, and that none stays."""

from hypothesis import given
from hypothesis import strategies as st

from api.ratelimit import fixed_window
from api.ratelimit.fixed_window import FixedWindows


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_window_begins_with_its_first_request_and_ends_by_itself():
    clock = Clock()
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


def test_windows_that_have_ended_are_forgotten():
    clock = Clock()
    counted = FixedWindows(clock)
    for number in range(500):
        counted.hit(f"address:{number}", 60)
    assert len(counted) == 500
    clock.now += 61
    counted.hit("address:new", 60)
    assert len(counted) == 1


def test_of_too_many_windows_those_that_began_first_are_forgotten(monkeypatch):
    monkeypatch.setattr(fixed_window, "MAX_WINDOWS", 3)
    counted = FixedWindows(Clock())
    for name in "abcd":
        counted.hit(name, 60)
    assert len(counted) == 3
    assert [counted.peek(name)[0] for name in "abcd"] == [0, 1, 1, 1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 50)), max_size=60))
def test_no_request_is_lost_and_none_counts_after_its_minute(requests):
    clock, began = Clock(), dict[str, float]()
    counted, told = FixedWindows(clock), dict[str, int]()
    for name, pause in requests:
        clock.now += pause
        if name not in began or clock.now >= began[name] + 60:
            began[name], told[name] = clock.now, 0
        told[name] += 1
        assert counted.hit(name, 60) == (told[name], began[name] + 60)
