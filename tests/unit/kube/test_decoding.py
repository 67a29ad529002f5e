"""What the apiserver sends is read, whatever users have put into it."""

import sys

import pytest

from kube.decoding import decoded


@pytest.mark.parametrize("levels", [1, 900, 1500, 10_000, 20_000])
def test_an_object_is_read_however_deeply_it_is_nested(levels: int) -> None:
    before = sys.getrecursionlimit()
    value = decoded(b'{"a":' * levels + b"1" + b"}" * levels)
    for _ in range(levels):
        value = value["a"]
    assert (value, sys.getrecursionlimit()) == (1, before)


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(ValueError):
        decoded(b"[" * 20_000)
