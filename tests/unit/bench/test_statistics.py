"""Comparisons of pairs."""

import pytest

from bench.lib.statistics import compare, percentile, spread


def test_the_first_pair_is_discarded_and_ratios_are_per_pair():
    comparison = compare([(1.0, 100.0), (1.0, 2.0), (2.0, 2.0), (4.0, 2.0)])
    assert (comparison.pairs, comparison.peer, comparison.ours) == (3, 2.0, 2.0)
    assert (comparison.ratio, comparison.ratio_min, comparison.ratio_max) == (1.0, 0.5, 2.0)
    assert comparison.line("s") == "ours 2 s, peer 2 s (medians of 3); ratio 1.00 (0.50 to 2.00)"


def test_a_single_pair_is_kept_and_reported():
    comparison = compare([(2.0, 1.0)])
    assert (comparison.pairs, comparison.ratio, comparison.discarded) == (1, 0.5, 0)
    assert comparison.line("s") == "ours 1 s, peer 2 s; ratio 0.50 (one pair, none discarded)"


def test_no_pairs_are_an_error():
    with pytest.raises(ValueError, match="needs a pair"):
        compare([])


def test_p99_is_reported_from_100_pairs_on():
    pairs = [(1.0, 1.0), *((float(n), 2.0 * n) for n in range(1, 101))]
    assert compare(pairs).line("s").endswith("; p99 ours 198 s, peer 99 s; ratio 2.00")
    assert "p99" not in compare(pairs[:-1]).line("s")


def test_percentile_and_spread():
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 101), 0.5) == 50
    assert percentile([7.0], 0.99) == 7.0
    assert spread([3.0, 1.0, 2.0], "s") == "2 s (1 to 3, n=3)"
