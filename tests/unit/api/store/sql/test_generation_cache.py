"""Tests of the generation cache: values are valid in one generation only."""

from hypothesis import given
from hypothesis import strategies as st

from api.store.sql.generation_cache import GenerationCache


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=50))
def test_never_returns_stale_values(steps):
    generation, rows = [0], dict.fromkeys("abc", 0)
    known: GenerationCache[str, int] = GenerationCache(lambda: generation[0], 2)
    for name, changes, meanwhile in steps:
        if changes:
            rows[name] += 1
            generation[0] += 1
        if known.get(name) is None:
            before, value = known.generation(), rows[name]
            if meanwhile:
                rows[name] += 1
                generation[0] += 1
            known.put(before, name, value)
        assert known.get(name) in (None, rows[name])


def test_unknown_generation_caches_nothing():
    known: GenerationCache[str, int] = GenerationCache(lambda: None, 2)
    known.put(known.generation(), "a", 1)
    assert known.get("a") is None


def test_size_is_bounded():
    known: GenerationCache[int, int] = GenerationCache(lambda: 1, 3)
    for number in range(10):
        known.put(1, number, number)
        assert known.get(number) == number
    assert sum(known.get(number) is not None for number in range(10)) <= 3
