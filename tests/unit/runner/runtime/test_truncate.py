"""`truncate` drops from a framework's event only the parts that cannot fit."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.crewyard_runtime.events import MAX_DATA_BYTES, channel_line, fit, truncate
from runner.crewyard_runtime.jsonsafe import json_safe

values = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=30,
)


@given(values)
def test_small_values_stay_unchanged(value: Any) -> None:
    assert json_safe(truncate(value)) == json_safe(value)


@pytest.mark.parametrize("value", ["x" * 10_000_000, ["x" * 9] * 100_000, {"rows": [[1] * 9_000] * 20}])
def test_large_values_are_marked_as_cut(value: Any) -> None:
    text = json.dumps(fit({"output": truncate(value)}, MAX_DATA_BYTES), ensure_ascii=False)
    assert "[cut]" in text
    assert len(text.encode()) <= MAX_DATA_BYTES


def test_a_long_list_has_the_number_of_omitted_items() -> None:
    short = truncate([0] * 30_000)
    assert isinstance(short, list)
    assert short[-1] == f"… {30_001 - len(short)} more"
    assert len(json.dumps(short)) > MAX_DATA_BYTES


def test_nested_values_are_truncated_to_what_can_fit() -> None:
    value: Any = {"state": {"a": {"b": {"rows": [[float(n) for n in range(1_500)] for _ in range(1_500)]}}}}
    assert len(json.dumps(truncate(value))) < 40 * MAX_DATA_BYTES


def test_circular_references_terminate() -> None:
    value: list[Any] = []
    value += [value, value]
    assert len(json.dumps(json_safe(truncate(value)))) < 40 * MAX_DATA_BYTES


@pytest.mark.parametrize("wrap", [lambda item: item, lambda item: {"a": [{"b": {"c": [[item]]}}]}])
def test_generators_of_the_crew_are_not_consumed(wrap: Any) -> None:
    pieces = (number for number in range(3))
    channel_line("tool.result", {"output": truncate(wrap(pieces))}, in_use=True)
    assert list(pieces) == [0, 1, 2]


def test_an_emitted_generator_becomes_a_bounded_list() -> None:
    assert b"[0, 1, 2]" in channel_line("step", {"rows": (number for number in range(3))})
    assert b"[cut]" in channel_line("step", {"rows": (number for number in itertools.count())})


class _Array:
    """Like a NumPy array of a thousand million values, which must not become a list."""

    __module__ = "numpy"
    size = 10**9

    def tolist(self) -> list[float]:
        raise AssertionError("it was converted to a list")

    def __str__(self) -> str:
        return "[0. 0. ... 0.]"


@pytest.mark.parametrize("value", [range(10**12), _Array()])
def test_lazy_values_are_not_converted_to_lists(value: Any) -> None:
    for in_use in (False, True):
        assert len(channel_line("step", {"value": value}, in_use=in_use)) < 65536
