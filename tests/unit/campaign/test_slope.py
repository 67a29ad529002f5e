"""Growth is a slope beyond its error; noise, a sawtooth or a single step is not growth."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.campaign.soak.slope import BLOCKS, fit

HOUR = 3600


def samples(value, count=600, seconds=1200):
    return [(at * seconds / count, value(at / count)) for at in range(count)]


def test_a_straight_line_is_found_exactly():
    slope = fit(samples(lambda at: 100 + 6 * at, seconds=HOUR))
    assert slope.per_hour == pytest.approx(6)
    assert slope.least == pytest.approx(6) and slope.most == pytest.approx(6)
    assert slope.grows(5)
    assert not slope.grows(7)


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_grow(seed):
    chance = random.Random(seed)
    assert not fit(samples(lambda at: 100 + chance.gauss(0, 2))).grows(1)


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_in_noise_is_found(seed):
    chance = random.Random(seed)
    assert fit(samples(lambda at: 100 + 8 * at + chance.gauss(0, 2))).grows(1)


def test_a_sawtooth_does_not_grow():
    assert not fit(samples(lambda at: 100 + 10 * (7 * at % 1))).grows(1)


@pytest.mark.parametrize("when", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_single_step_does_not_grow(when):
    chance = random.Random(7)
    assert not fit(samples(lambda at: 100 + 10 * (at > when) + chance.gauss(0, 0.2))).grows(1)


@pytest.mark.parametrize("when", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_leak_beside_a_step_is_found(when):
    chance = random.Random(7)
    slope = fit(samples(lambda at: 100 + 4 * at + 10 * (at > when) + chance.gauss(0, 0.2)))
    assert slope.grows(1)


def test_a_leak_in_steps_is_found():
    assert fit(samples(lambda at: 100 + int(8 * at))).grows(1)


@given(st.floats(-50, 50), st.floats(-1000, 1000))
def test_a_falling_or_constant_series_never_grows(fall, level):
    assert not fit(samples(lambda at: level - abs(fall) * at)).grows(0.001)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match=str(2 * BLOCKS)):
        fit(samples(lambda at: 1, count=2 * BLOCKS - 1))
