"""The table [artifacts], alone or beside a configuration of another tool."""

import pytest

from plan.config.artifacts import has_only_artifacts, read_include
from plan.config.toml_tables import read_toml
from plan.errors import PlanError

TABLE = "artifacts]\ninclude = {}\n"
BELOW = 'Use names below the repository, as in "output/**".'
FEWER = "Use at most 20 with 512 characters in total, such as a directory."


def include(**files: str) -> tuple[str, ...]:
    return read_include({f"{name}.toml": text.encode() for name, text in files.items()})


@pytest.mark.parametrize(
    ("files", "patterns"),
    [
        ({}, ()),
        ({"crew": "[run]\n"}, ()),
        ({"crew": "[artifacts]\n"}, ()),
        ({"crew": "[" + TABLE.format(["b", "a..b/*", "b"])}, ("b", "a..b/*")),
        ({"pyproject": "[tool.crewyard." + TABLE.format(["a"])}, ("a",)),
        ({"pyproject": "[tool.x]\n"}, ()),
        ({"pyproject": "[project]\n"}, ()),
        ({"crew": "[run]\n", "pyproject": "[tool.crewyard." + TABLE.format(["a"])}, ()),
        ({"crew": "[" + TABLE.format([f"{number:02}" for number in range(20)])},
         tuple(f"{number:02}" for number in range(20))),
        ({"crew": "[" + TABLE.format(["a" * 256, "b" * 256])}, ("a" * 256, "b" * 256)),
    ],
)  # fmt: skip
def test_patterns_are_those_of_the_own_configuration(
    files: dict[str, str], patterns: tuple[str, ...]
) -> None:
    assert include(**files) == patterns


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ("[artifacts]\nincludes = []", "includes is unknown", "Did you mean 'include'?"),
        ("[artifacts]\ninclude = 'a'", "include must be a list of strings",
         'For example: include = ["output/**"].'),
        ("[artifacts]\ninclude = ['a', '!b']", "include has '!b'", BELOW),
        ("[artifacts]\ninclude = ['a\\b']", "include has 'a\\\\b'", BELOW),
        ("[artifacts]\ninclude = ['a/../b']", "include has 'a/../b'", BELOW),
        (f"[artifacts]\ninclude = ['!{'b' * 300}']", f"include has '!{'b' * 199}'", BELOW),
        (f"[artifacts]\ninclude = {[f'{number:02}' for number in range(21)]}",
         "include has 21 patterns of 42 characters", FEWER),
        (f"[artifacts]\ninclude = {['a' * 256, 'b' * 257]}",
         "include has 2 patterns of 513 characters", FEWER),
    ],
)  # fmt: skip
def test_pattern_that_leaves_the_repository_or_is_too_much_is_refused(
    table: str, message: str, hint: str
) -> None:
    with pytest.raises(PlanError) as raised:
        include(crew=table)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"crew.toml line 2: artifacts.{message}",
        hint,
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("[artifacts]\n", True), ("[artifacts]\n[run]\n", False), ("", False)]
)
def test_file_with_artifacts_alone_configures_nothing_else(text: str, expected: bool) -> None:
    assert has_only_artifacts(read_toml({"crew.toml": text.encode()}, "crew.toml")) is expected
