"""The list of served namespaces."""

import pytest

from crds.teams.namespaces import MAX_NAMESPACES, parse_namespaces, place_of, served


@pytest.mark.parametrize(
    ("text", "found"),
    [("", ()), (" team-a , team-b,team-a,", ("team-a", "team-b")), ("a", ("a",)), ("x" * 63, ("x" * 63,))],
)
def test_names_are_read_once_each(text, found):
    assert parse_namespaces(text) == found


@pytest.mark.parametrize("text", ["Team", "a,-b", "a b", "a/b", "x" * 64, "team_a"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(ValueError, match="is not the name of a namespace"):
        parse_namespaces(text)


def test_too_many_are_refused():
    with pytest.raises(ValueError, match="more than"):
        parse_namespaces(",".join(f"team-{number}" for number in range(MAX_NAMESPACES + 1)))


def test_the_own_namespace_is_first_and_has_no_place():
    assert served("crews", ("team-a", "crews")) == ("crews", "team-a")
    assert [place_of(name, "crews") for name in ("crews", "", "team-a")] == [None, None, "team-a"]
