"""What a framework's event leaves out before it is made JSON: only what could never fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.crewyard_runtime.events import LARGEST, brief, fit
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
