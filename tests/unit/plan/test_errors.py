"""Lists and suggestions in the messages of errors."""

import pytest

from plan.errors import PlanError, closest_match, join_limited

LETTERS = "abcdefghijkl"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (1, "a"),
        (10, "a, b, c, d, e, f, g, h, i, j"),
        (11, "a, b, c, d, e, f, g, h, i, j and 1 more"),
        (12, "a, b, c, d, e, f, g, h, i, j and 2 more"),
    ],
)
def test_long_list_ends_with_the_number_of_the_others(count: int, text: str) -> None:
    assert join_limited(tuple(LETTERS[:count])) == text


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("framwork", "framework"), ("frames", "framed"), ("tides", None), ("", None)],
)
def test_most_similar_name_is_suggested(name: str, suggestion: str | None) -> None:
    assert closest_match(name, ["framework", "entrypoint", "framed"]) == suggestion


def test_error_without_a_next_step_has_an_empty_hint() -> None:
    error = PlanError("ConfigInvalid", "a.toml is empty")
    assert (str(error), error.reason, error.hint) == ("ConfigInvalid: a.toml is empty", "ConfigInvalid", "")
