"""Lines of Kaniko's log, and when the log can be read. Pure."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.projection.kaniko_logs import MAX_LINE_BYTES, has_log, split_lines
from crds.objects import Pod


async def split_at(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    bounds = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(bounds):
        yield data[start:end]


@given(text=st.text(alphabet="ab\nü"), cuts=st.lists(st.integers(0, 100)))
async def test_split_lines_is_independent_of_chunks(text: str, cuts: list[int]) -> None:
    lines = [line async for batch in split_lines(split_at(text.encode(), cuts)) for line in batch]
    expected = text if text.endswith("\n") or not text else text + "\n"
    assert "".join(lines) == expected
    assert all(line.count("\n") == 1 for line in lines)


async def test_endless_line_is_truncated() -> None:
    lines = [
        batch
        async for batch in split_lines(
            split_at(b"x" * (10 * MAX_LINE_BYTES), [MAX_LINE_BYTES * n for n in range(10)])
        )
    ]
    assert max(len(line) for batch in lines for line in batch) <= MAX_LINE_BYTES + 1


async def test_long_line_is_truncated_to_one_line() -> None:
    log = b"a\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb\n"
    for size in (len(log), 4096, MAX_LINE_BYTES + 7):
        cuts = list(range(0, len(log), size))
        lines = [line async for batch in split_lines(split_at(log, cuts)) for line in batch]
        assert lines == ["a\n", "x" * MAX_LINE_BYTES + "\n", "b\n"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"running": {}}, True), ({"terminated": {"exitCode": 1}}, True), ({"waiting": {}}, False), ({}, False)],
)
def test_has_log(state: dict[str, Any], expected: bool) -> None:
    pod = Pod({"status": {"initContainerStatuses": [{"name": "source"}, {"name": "kaniko", "state": state}]}})
    assert has_log(pod) is expected
    assert not has_log(Pod({"status": {"containerStatuses": [{"name": "push", "state": state}]}}))
