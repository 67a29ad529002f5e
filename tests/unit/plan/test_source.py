"""Source trees: files as text, without excluded paths, and with the repository around them."""

import pytest

from plan.errors import PlanError
from plan.source import RepositoryFiles, text_of, without_paths


@pytest.mark.parametrize(
    "data",
    [b"p\xc3\xa9", b"\xef\xbb\xbfp\xc3\xa9", b"\xff\xfep\x00\xe9\x00", b"\xfe\xff\x00p\x00\xe9"],
    ids=["UTF-8", "UTF-8 with a byte order mark", "UTF-16 little endian", "UTF-16 big endian"],
)
def test_text_is_read_in_each_unicode_encoding(data: bytes) -> None:
    assert text_of({"a.toml": data}, "a.toml", len(data)) == "p\xe9"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"a" * 11, "a.toml has 11 bytes; at most 10 are read", "Make a.toml smaller."),
        (b"ab\xe9", "a.toml is not UTF-8 text (byte 2)", "Save a.toml as UTF-8."),
        (b"\xef\xbb\xbfa\xe9", "a.toml is not UTF-8 text (byte 4)", "Save a.toml as UTF-8."),
        (b"\xff\xfea\x00b", "a.toml is not UTF-16 text (byte 4)", "Save a.toml as UTF-8."),
    ],
)
def test_file_that_is_no_text_is_refused(data: bytes, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        text_of({"a.toml": data}, "a.toml", 10)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == ("ConfigInvalid", message, hint)
    assert str(raised.value) == f"ConfigInvalid: {message}"


def test_excluded_path_is_absent() -> None:
    files = without_paths({"a": b"1", "b": b"2", "c": b"3"}, {"b", "z"})
    assert (dict(files), len(files), "b" in files, "c" in files) == ({"a": b"1", "c": b"3"}, 2, False, True)
    with pytest.raises(KeyError, match="b"):
        files["b"]


@pytest.mark.parametrize(
    ("files", "base", "outside", "expected"),
    [
        ({"a": b"1"}, "", None, {"a": b"1"}),
        ({"a": b"1"}, "crew", None, {"crew/a": b"1"}),
        (
            {"a": b"1", "b/crew/c": b"2"},
            "crew",
            {"a": b"3", "crews/a": b"4"},
            {"crew/a": b"1", "crew/b/crew/c": b"2", "a": b"3", "crews/a": b"4"},
        ),
    ],
)
def test_paths_are_relative_to_the_repository(
    files: dict[str, bytes], base: str, outside: dict[str, bytes] | None, expected: dict[str, bytes]
) -> None:
    repository = RepositoryFiles(files, base, outside)
    assert (dict(repository), len(repository), repository.base) == (expected, len(expected), base)
    asked = ["a", "b", "crew/a", "crew/b", "crew/b/crew/c", "crews/a", "b/crew/c", 1]
    assert [each for each in asked if each in repository] == [each for each in asked if each in expected]


def test_repository_may_have_no_other_files() -> None:
    assert dict(RepositoryFiles({"a": b"1"})) == {"a": b"1"}
