"""Decoding of the apiserver's JSON at any nesting depth."""

import sys

import pytest

from kube.decoding import decode


@pytest.mark.parametrize("levels", [1, 900, 1500, 10_000, 20_000])
def test_deep_nesting(levels: int) -> None:
    before = sys.getrecursionlimit()
    value = decode(b'{"a":' * levels + b"1" + b"}" * levels)
    for _ in range(levels):
        value = value["a"]
    assert (value, sys.getrecursionlimit()) == (1, before)


def test_invalid_json() -> None:
    with pytest.raises(ValueError):
        decode(b"[" * 20_000)
