"""Tables of TOML files: values of the right type, and the place of a key in messages."""

import pytest

from plan.config.toml_tables import TomlTable, read_toml
from plan.errors import PlanError


def table(text: str, *path: str) -> TomlTable:
    found = read_toml({"a.toml": text.encode()}, "a.toml")
    for key in path:
        inner = found.table(key)
        assert inner is not None
        found = inner
    return found


@pytest.mark.parametrize(
    ("text", "name", "key", "location"),
    [
        ("a = 1\nb = 2\n", "", "b", "a.toml line 2: b"),
        ("ab = 1\n'b' = 2\n", "", "b", "a.toml line 2: b"),
        ('[t]\n  "b".c = 1\n', "t", "b", "a.toml line 2: t.b"),
        ("b = 1\n[t]\n[[u]]\nb = 2\n", "u", "b", "a.toml line 4: u.b"),
        ("b = 1\n[t]\nx = 1\n", "t", "b", "a.toml: t.b"),
        ("[t]\nb = 1\n[u]\n[t2]\nb = 1\n", "t2", "b", "a.toml line 5: t2.b"),
        ("[t]\nx = 1\n[u.t]\nb = 1\n", "t", "b", "a.toml: t.b"),
        ("x = 1\n[t.b]\n", "t", "b", "a.toml line 2: t.b"),
        ("[t.b.c]\n", "t", "b", "a.toml line 1: t.b"),
        ("[t.bc]\n", "t", "b", "a.toml: t.b"),
        ("[b]\n", "", "b", "a.toml line 1: b"),
        ("[ \"t\" . 'b' ] # c = d\n", "t", "b", "a.toml line 1: t.b"),
        ("[t] # c = d\na+b = 1\n", "t", "a+b", "a.toml line 2: t.a+b"),
        ("[t]\nx = [1] # b = 1\n[u] = b\nb = 2", "t", "b", "a.toml line 4: t.b"),
    ],
)
def test_location_of_a_key(text: str, name: str, key: str, location: str) -> None:
    assert TomlTable("a.toml", name, {}, text).location(key) == location


def test_values_of_the_right_type_are_returned() -> None:
    found = table("[t]\na = ' x '\nb = ['x', 'y']\nc = {d = 1}\n", "t")
    assert (found.text_at("a", "x"), found.text_at("z", "x")) == (" x ", None)
    assert (found.texts_at("b", "x"), found.texts_at("z", "x")) == (("x", "y"), ())
    assert (found.table("c"), found.table("z")) == (TomlTable("a.toml", "t.c", {"d": 1}, found.text), None)
    assert (found.unknown("a", "c"), found.unknown("a", "b", "c")) == (["t.b"], [])
    found.allow_only("a", "b", "c")


@pytest.mark.parametrize("value", ["3", "' '", "''", "['x']", "false"])
def test_another_value_than_a_text_is_refused(value: str) -> None:
    with pytest.raises(PlanError) as raised:
        table(f"a = {value}\n").text_at("a", "pkg:f")
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        "a.toml line 1: a must be a non-empty string",
        'For example: a = "pkg:f".',
    )


@pytest.mark.parametrize("value", ["3", "'x'", "['']", "['x', 1]", "false"])
def test_another_value_than_a_list_of_texts_is_refused(value: str) -> None:
    with pytest.raises(PlanError) as raised:
        table(f"a = {value}\n").texts_at("a", "tests")
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        "a.toml line 1: a must be a list of strings",
        'For example: a = ["tests"].',
    )


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        (("a", "timeout"), "Did you mean 'timeout'?"),
        (("a", "inputs"), "Known keys: a, inputs."),
        (tuple("abcdefghijkl"), "Known keys: a, b, c, d, e, f, g, h, i, j and 2 more."),
    ],
)
def test_unknown_key_is_refused_with_the_known_ones(known: tuple[str, ...], hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        table("[t]\na = 1\ntimeot = 2\n", "t").allow_only(*known)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        "a.toml line 3: t.timeot is unknown",
        hint,
    )


@pytest.mark.parametrize(
    ("text", "problem"), [("a = \n", "line 1"), ("a = " + "[" * 9999, ""), ("a = " + "9" * 5000, "digits")]
)
def test_file_that_is_no_toml_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PlanError) as raised:
        table(text)
    assert (raised.value.reason, raised.value.hint) == ("ConfigInvalid", "Correct a.toml at that position.")
    assert raised.value.message.startswith("a.toml is not valid TOML: ") and problem in raised.value.message
