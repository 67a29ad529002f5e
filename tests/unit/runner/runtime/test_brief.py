"""What a framework's event leaves out before it is made JSON: only what could never fit."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.crewyard_runtime.events import LARGEST, brief, fit, line
from runner.crewyard_runtime.jsonsafe import safe

values = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=30,
)


@given(values)
def test_what_is_small_stays_as_it_is(value: Any) -> None:
    assert safe(brief(value)) == safe(value)


@pytest.mark.parametrize("value", ["x" * 10_000_000, ["x" * 9] * 100_000, {"rows": [[1] * 9_000] * 20}])
def test_what_is_large_is_still_seen_to_be_cut(value: Any) -> None:
    text = json.dumps(fit({"output": brief(value)}, LARGEST), ensure_ascii=False)
    assert "[cut]" in text
    assert len(text.encode()) <= LARGEST


def test_a_long_list_says_how_much_is_missing() -> None:
    short = brief([0] * 30_000)
    assert isinstance(short, list)
    assert short[-1] == f"… {30_001 - len(short)} more"
    assert len(json.dumps(short)) > LARGEST


def test_however_it_is_nested_no_more_is_looked_at_than_could_fit() -> None:
    value: Any = {"state": {"a": {"b": {"rows": [[float(n) for n in range(1_500)] for _ in range(1_500)]}}}}
    assert len(json.dumps(brief(value))) < 40 * LARGEST


def test_what_refers_to_itself_comes_to_an_end() -> None:
    value: list[Any] = []
    value += [value, value]
    assert len(json.dumps(safe(brief(value)))) < 40 * LARGEST


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: {"a": [{"b": {"c": [[one]]}}]}])
def test_what_a_tool_gives_piece_by_piece_is_left_to_the_crew(wrap: Any) -> None:
    pieces = (number for number in range(3))
    line("tool.result", {"output": brief(wrap(pieces))}, look=True)
    assert list(pieces) == [0, 1, 2]


def test_an_emitted_generator_is_a_list_and_need_not_end() -> None:
    assert b"[0, 1, 2]" in line("step", {"rows": (number for number in range(3))})
    assert b"[cut]" in line("step", {"rows": (number for number in itertools.count())})


class _Array:
    """What NumPy's arrays have, of which a thousand million values would not fit into the pod."""

    __module__ = "numpy"
    size = 10**9

    def tolist(self) -> list[float]:
        raise AssertionError("it was made a list")

    def __str__(self) -> str:
        return "[0. 0. ... 0.]"


@pytest.mark.parametrize("value", [range(10**12), _Array()])
def test_what_is_small_only_while_it_is_no_list_stays_small(value: Any) -> None:
    for look in (False, True):
        assert len(line("step", {"value": value}, look=look)) < 65536
