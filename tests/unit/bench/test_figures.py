"""Comparisons by pairs."""

import pytest

from bench.figures import compare, percentile, spread


def test_the_first_pair_is_discarded_and_ratios_are_taken_pair_by_pair():
    found = compare([(1.0, 100.0), (1.0, 2.0), (2.0, 2.0), (4.0, 2.0)])
    assert (found.pairs, found.peer, found.ours) == (3, 2.0, 2.0)
    assert (found.ratio, found.ratio_min, found.ratio_max) == (1.0, 0.5, 2.0)
    assert found.line("s") == "ours 2 s, peer 2 s (medians of 3); ratio 1.00 (0.50 to 2.00)"


def test_one_pair_compares_nothing():
    with pytest.raises(ValueError, match="at least two"):
        compare([(1.0, 1.0)])


def test_percentile_and_spread():
    assert percentile(range(1, 101), 0.99) == 100
    assert percentile(range(1, 101), 0.5) == 51
    assert spread([3.0, 1.0, 2.0], "s") == "2 s (1 to 3, n=3)"
