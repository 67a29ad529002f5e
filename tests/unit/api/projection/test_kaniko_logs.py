"""Kaniko's log in lines, and when it can be read. Pure."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.projection.kaniko_logs import MAX_LINE_BYTES, split_lines, has_log
from crds.objects import Pod


async def parts(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        yield data[start:end]


@given(text=st.text(alphabet="ab\nü"), cuts=st.lists(st.integers(0, 100)))
async def test_lines_do_not_depend_on_how_the_log_arrives(text: str, cuts: list[int]) -> None:
    found = [line async for batch in split_lines(parts(text.encode(), cuts)) for line in batch]
    expected = text if text.endswith("\n") or not text else text + "\n"
    assert "".join(found) == expected
    assert all(line.count("\n") == 1 for line in found)


async def test_a_line_without_end_is_bounded() -> None:
    found = [batch async for batch in split_lines(parts(b"x" * (10 * MAX_LINE_BYTES), [MAX_LINE_BYTES * n for n in range(10)]))]
    assert max(len(line) for batch in found for line in batch) <= MAX_LINE_BYTES + 1


async def test_a_long_line_is_one_however_it_arrives() -> None:
    log = b"a\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb\n"
    for size in (len(log), 4096, MAX_LINE_BYTES + 7):
        cuts = list(range(0, len(log), size))
        found = [line async for batch in split_lines(parts(log, cuts)) for line in batch]
        assert found == ["a\n", "x" * MAX_LINE_BYTES + "\n", "b\n"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"running": {}}, True), ({"terminated": {"exitCode": 1}}, True), ({"waiting": {}}, False), ({}, False)],
)
def test_a_log_is_read_once_its_container_started(state: dict[str, Any], expected: bool) -> None:
    pod = Pod({"status": {"initContainerStatuses": [{"name": "source"}, {"name": "kaniko", "state": state}]}})
    assert has_log(pod) is expected
    assert not has_log(Pod({"status": {"containerStatuses": [{"name": "push", "state": state}]}}))
