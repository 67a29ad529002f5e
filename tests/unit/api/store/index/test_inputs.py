"""Tests of inputs: inline in the object, or by reference."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.store.index.runs.inputs import canonical, inline_input, is_equal, reference, refers_to
from api.store.store import Store
from api.v1.runs.create import manifest
from tests.unit.api.store import builders

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
INLINE = 16 * 1024
FILLED = INLINE - len(canonical({"a": ""}))


@pytest.mark.parametrize(
    ("value", "inline"),
    [
        ({}, True),
        ({"a": "x" * FILLED}, True),
        ({"a": "x" * (FILLED + 1)}, False),
        ({"a": "é" * (FILLED // 2 + 1)}, False),
        ({"a": 2**63 - 1, "b": -(2**63)}, True),
        ({"a": [{"b": 2**63}]}, False),
        ({"a": -(2**63) - 1}, False),
        ({"a": "18446744073709551616", "b": 1e300}, True),
    ],
)
def test_small_input_is_inline(value, inline):
    found = reference(value, INLINE)
    assert (found is None) == inline
    if found:
        text = canonical(value)
        assert found == {"sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}


@given(VALUES)
def test_reference_survives_storage(value):
    whole = {"a": value, "fill": "x" * INLINE}
    assert reference(json.loads(json.dumps(whole)), INLINE) == reference(
        dict(reversed(whole.items())), INLINE
    )


def test_deep_value():
    deep = json.loads("[" * 300 + "]" * 300)
    assert reference({"a": deep}, INLINE) is None
    assert is_equal({"a": deep}, {"a": deep})


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 2**53 + 1}, {"a": 2**53 + 1}, True),
        ({"a": 2**53 + 1}, {"a": 2**53}, False),
        ({"a": 1.0, "b": 1e20}, {"b": 100000000000000000000, "a": 1}, True),
        ({"a": None}, {}, False),
    ],
)
def test_is_equal_as_kubernetes_stores(one, other, equal):
    assert is_equal(one, other) == equal


def test_inline_input():
    most = 256 * 1024
    assert inline_input({}, most) == {}
    assert inline_input({"input": {"a": 1}}, most) == {"a": 1}
    assert inline_input({"inputRef": {"sha256": "0" * 64, "size": 20000}}, most) is None
    assert inline_input({"input": {"a": "x" * (most - 100)}}, most) is not None
    assert inline_input({"input": {"a": "x" * most}}, most) is None
    assert inline_input({"input": {"a": "x" * 100}}, 100) is None


def test_refers_to():
    found = reference({"a": 1}, 2)
    assert found is not None and reference({"a": 1}, 100) is None
    assert refers_to(found, {"a": 1}) and not refers_to(found, {"a": 2})


async def test_large_input_is_whole_in_its_row(store: Store) -> None:
    await builders.add_demo_project(store)
    whole = {"text": "x" * 100_000, "number": 2**80}
    name = await builders.create_run(store, input=whole)
    row = await store.runs.get(name)
    assert row is not None
    spec = manifest(row, "project-1", INLINE)["spec"]
    assert spec == {"project": "demo", "deployment": "dep-a", "inputRef": reference(whole, INLINE)}
    await store.run_writer.observe(builders.run(name, "Running", spec=spec), builders.later(1))
    row = await store.runs.get(name)
    assert row is not None and row.input == whole
