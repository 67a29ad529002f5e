"""Parameters of which `make test` runs some."""

import pytest

from tests.daily import daily


def test_only_the_chosen_values_are_not_nightly() -> None:
    found = daily(["a", "b", "c"], ("b",), str.upper)
    assert [(one.id, [mark.name for mark in one.marks]) for one in found] == [
        ("A", ["nightly"]),
        ("B", []),
        ("C", ["nightly"]),
    ]


def test_a_chosen_value_must_be_one_of_them() -> None:
    with pytest.raises(AssertionError, match="typo"):
        daily(["a"], ("typo",))
