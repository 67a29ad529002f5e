"""Parallel uploads: each file once, never above the limits, none forgotten."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1.artifacts.upload_pool import MAX_PARALLEL_UPLOADS, UploadPool


def file(name: int, size: int) -> Any:
    return SimpleNamespace(name=str(name), size=size)


@given(
    sizes=st.lists(st.integers(0, 9), max_size=12),
    refused=st.sets(st.integers(0, 11)),
    limits=st.tuples(st.integers(0, 12), st.integers(0, 60)),
)
def test_parallel_uploads_store_the_same_files_as_sequential_ones(
    sizes: list[int], refused: set[int], limits: tuple[int, int]
) -> None:
    def fits(stored: dict[str, int], item: Any, count: int, size: int) -> bool:
        return len(stored) + count < limits[0] and sum(stored.values()) + size + item.size <= limits[1]

    files = [file(number, size) for number, size in enumerate(sizes)]
    sequential: dict[str, int] = {}
    for item in files:
        if fits(sequential, item, 0, 0) and int(item.name) not in refused:
            sequential[item.name] = item.size
    parallel: dict[str, int] = {}
    started: list[str] = []
    lock = threading.Lock()

    def store(_: Any, item: Any) -> None:
        with lock:
            started.append(item.name)
        if int(item.name) not in refused:
            parallel[item.name] = item.size

    UploadPool(object).upload_all(files, lambda item, count, size: fits(parallel, item, count, size), store)  # type: ignore[arg-type]
    assert parallel == sequential
    assert len(started) == len(set(started))


def test_few_connections_are_opened_and_reused() -> None:
    opened: list[object] = []

    def connect() -> Any:
        opened.append(object())
        return opened[-1]

    pool, used = UploadPool(connect), set()
    for count in (0, 1, 2, 50, 50):
        pool.upload_all([file(n, 1) for n in range(count)], lambda *_: True, lambda api, _: used.add(api))
    assert len(opened) == MAX_PARALLEL_UPLOADS
    assert used <= set(opened)


def test_an_exception_ends_the_batch_but_not_the_pool() -> None:
    pool, done = UploadPool(object), []  # type: ignore[arg-type]

    def fail(_: Any, item: Any) -> None:
        if item.name == "5":
            raise LookupError
        while 5 < int(item.name) < 1000 and pool._error is None:
            time.sleep(0.001)
        done.append(item.name)

    with pytest.raises(LookupError):
        pool.upload_all([file(n, 1) for n in range(1000)], lambda *_: True, fail)
    assert len(done) < 5 + MAX_PARALLEL_UPLOADS
    pool.upload_all([file(n, 1) for n in range(1001, 1009)], lambda *_: True, fail)
    assert set(map(str, range(1001, 1009))) <= set(done)
