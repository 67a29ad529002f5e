"""Tokens by model: what a usage event adds, and how many names are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.store.token_counts import (
    MAX_MODEL_NAME_CHARACTERS,
    MAX_MODELS,
    OTHER_MODELS,
    TokenCounts,
    joined,
)


def counted(*events: dict[str, object]) -> TokenCounts:
    counts = TokenCounts()
    for event in events:
        counts.add("usage", event)
    return counts


def call(model: object, prompt: object = 3, completion: object = 4) -> dict[str, object]:
    return {"model": model, "prompt_tokens": prompt, "completion_tokens": completion}


def test_tokens_are_added_by_model() -> None:
    found = counted(call("a"), call("b", 1, 0), call("a", 10, 10))
    assert found == TokenCounts(14, 14, {"a": (13, 14), "b": (1, 0)})


@pytest.mark.parametrize("model", [None, "", 5, ["a"], {"name": "a"}])
def test_tokens_without_a_name_count_in_total_alone(model: object) -> None:
    assert counted(call(model), call("a")) == TokenCounts(6, 8, {"a": (3, 4)})


def test_a_call_without_tokens_takes_no_place() -> None:
    assert counted(call("a", 0, 0), call("b", None, "7")) == TokenCounts()


def test_other_events_add_nothing() -> None:
    counts = TokenCounts()
    counts.add("log", call("a"))
    assert counts == TokenCounts()


def test_a_long_name_is_cut() -> None:
    assert list(counted(call("a" * 10**6)).models) == ["a" * MAX_MODEL_NAME_CHARACTERS]


def test_a_name_is_text_that_every_database_stores() -> None:
    assert counted(call("a\ud800b\ue000")).models == {"a?b\ue000": (3, 4)}


def test_names_above_the_first_ones_are_other() -> None:
    names = [f"m{number}" for number in range(MAX_MODELS + 2)]
    found = counted(*map(call, names), call("m0")).models
    assert list(found) == [*names[:MAX_MODELS], OTHER_MODELS]
    assert (found["m0"], found[OTHER_MODELS]) == ((6, 8), (6, 8))


def test_a_model_with_the_name_of_the_rest_takes_no_place() -> None:
    names = [OTHER_MODELS, *(f"m{number}" for number in range(MAX_MODELS))]
    assert list(counted(*map(call, names)).models) == names


models = st.dictionaries(st.text("abc", max_size=3), st.tuples(st.integers(0, 9), st.integers(0, 9)))


@given(models, models, st.integers(0, 5) | st.none())
def test_a_sum_loses_no_token(counted: dict, more: dict, most: int | None) -> None:  # type: ignore[type-arg]
    found = joined(counted, more, most)
    for index in (0, 1):
        values = [*counted.values(), *more.values()]
        assert sum(v[index] for v in found.values()) == sum(v[index] for v in values)
    assert found.keys() - counted.keys() <= more.keys() | {OTHER_MODELS}
    assert most is None or len(found.keys() - {OTHER_MODELS}) <= max(most, len(counted))
