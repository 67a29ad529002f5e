"""Files that are sent at once: each once, no more than there is place for, none left behind."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1.artifacts.upload_pool import LANES, Lanes


def file(name: int, size: int) -> Any:
    return SimpleNamespace(name=str(name), size=size)


@given(
    sizes=st.lists(st.integers(0, 9), max_size=12),
    refused=st.sets(st.integers(0, 11)),
    most=st.tuples(st.integers(0, 12), st.integers(0, 60)),
)
def test_what_is_stored_at_once_is_what_would_be_stored_in_a_row(
    sizes: list[int], refused: set[int], most: tuple[int, int]
) -> None:
    def keep(kept: dict[str, int], one: Any, count: int, size: int) -> bool:
        return len(kept) + count < most[0] and sum(kept.values()) + size + one.size <= most[1]

    files = [file(number, size) for number, size in enumerate(sizes)]
    in_a_row: dict[str, int] = {}
    for one in files:
        if keep(in_a_row, one, 0, 0) and int(one.name) not in refused:
            in_a_row[one.name] = one.size
    at_once: dict[str, int] = {}
    begun: list[str] = []
    lock = threading.Lock()

    def store(_: Any, one: Any) -> None:
        with lock:
            begun.append(one.name)
        if int(one.name) not in refused:
            at_once[one.name] = one.size

    Lanes(object).send(files, lambda one, count, size: keep(at_once, one, count, size), store)  # type: ignore[arg-type]
    assert at_once == in_a_row
    assert len(begun) == len(set(begun))


def test_few_connections_are_made_and_kept() -> None:
    made: list[object] = []

    def connect() -> Any:
        made.append(object())
        return made[-1]

    lanes, used = Lanes(connect), set()
    for count in (0, 1, 2, 50, 50):
        lanes.send([file(n, 1) for n in range(count)], lambda *_: True, lambda facade, _: used.add(facade))
    assert len(made) == LANES
    assert used <= set(made)


def test_what_one_raises_ends_the_batch_and_the_next_begins_anew() -> None:
    lanes, done = Lanes(object), []  # type: ignore[arg-type]

    def fail(_: Any, one: Any) -> None:
        if one.name == "5":
            raise LookupError
        done.append(one.name)

    with pytest.raises(LookupError):
        lanes.send([file(n, 1) for n in range(1000)], lambda *_: True, fail)
    assert len(done) < 999
    lanes.send([file(n, 1) for n in range(1001, 1009)], lambda *_: True, fail)
    assert set(map(str, range(1001, 1009))) <= set(done)
