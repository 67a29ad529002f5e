"""Tests of the encoding of text and JSON for PostgreSQL."""

import json
from math import inf, nan

from hypothesis import example, given, settings
from hypothesis import strategies as st

from api.store.sql.postgres import text as postgres_text

hostile = st.text(st.one_of(st.characters(), st.sampled_from("\0\ue000\ud800\udfff\\u0de")))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | hostile,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hostile, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(hostile)
@example("\ue0000000")
def test_text_round_trip(text: str) -> None:
    kept = postgres_text.encode(text)
    assert postgres_text.decode(kept) == text
    assert "\0" not in kept
    kept.encode()


@settings(deadline=None)
@given(values)
@example("\\u0000")
@example("\\\\u0000\0")
@example("\ue000d800\U0001f600")
def test_json_round_trip(value: object) -> None:
    kept = postgres_text.dump(value)
    assert postgres_text.load(kept) == value
    assert "\0" not in json.dumps(json.loads(kept), ensure_ascii=False)
    json.dumps(json.loads(kept), ensure_ascii=False).encode()


def test_nan_and_infinity_become_null() -> None:
    kept = postgres_text.dump({"a": [nan, 1.5], "b": -inf})
    assert postgres_text.load(kept) == {"a": [None, 1.5], "b": None}
