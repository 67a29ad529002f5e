"""`[build] exclude`: patterns, and their effect on plan, hash and messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.errors import PlanError
from plan.exclude import excluded_paths
from plan.make import make_plan

FILES = dict.fromkeys(
    (
        "main.py",
        "README.md",
        "tests/test_main.py",
        "src/pkg/tests/test_pkg.py",
        "docs/index.md",
        "docs/img/logo.png",
        "data/keep.csv",
        "data/big.csv",
        "data/raw/a.csv",
        "build",
        "notes/build/x.txt",
    ),
    b"",
)


@pytest.mark.parametrize(
    ("patterns", "excluded"),
    [
        ([], ""),
        (["tests"], "tests/test_main.py src/pkg/tests/test_pkg.py"),
        (["/tests"], "tests/test_main.py"),
        (["tests/"], "tests/test_main.py src/pkg/tests/test_pkg.py"),
        (["tests//"], "tests/test_main.py src/pkg/tests/test_pkg.py"),
        (["./tests"], "tests/test_main.py"),
        (["*.md"], "README.md docs/index.md"),
        (["docs/*.md"], "docs/index.md"),
        (["docs/*"], "docs/index.md docs/img/logo.png"),
        (["docs/**"], "docs/index.md docs/img/logo.png"),
        (["src/**/tests"], "src/pkg/tests/test_pkg.py"),
        (["data/**/*.csv"], "data/keep.csv data/big.csv data/raw/a.csv"),
        (["data", "!data/keep.csv"], "data/big.csv data/raw/a.csv"),
        (["!data/keep.csv", "data"], "data/keep.csv data/big.csv data/raw/a.csv"),
        (["data", "!raw/"], "data/keep.csv data/big.csv"),
        (["build/"], "notes/build/x.txt"),
        (["build"], "build notes/build/x.txt"),
        (["build/**"], ""),
        (["data/[kb]*.csv"], "data/keep.csv data/big.csv"),
        (["data/???.csv"], "data/big.csv"),
        (["DATA"], ""),
    ],
)
def test_patterns(patterns: list[str], excluded: str) -> None:
    assert set(excluded_paths(FILES, patterns)) == set(excluded.split())


def test_all_but_one_directory() -> None:
    assert set(FILES) - set(excluded_paths(FILES, ["*", "!src"])) == {"src/pkg/tests/test_pkg.py"}


@pytest.mark.parametrize(
    ("patterns", "excluded"),
    [
        (["a/b"], {"a/b": "a/b"}),
        (["b", "c"], {"a/b": "b", "x/a/b": "b", "c/d": "c"}),
        (["*", "!a", "x"], {"c/d": "*", "x/a/b": "x"}),
        (["*", "!a", "!x/a/", "b", "!x/**"], {"c/d": "*", "a/b": "b"}),
        ([" a/ ", "! x "], {"a/b": " a/ ", "x/a/b": " a/ "}),
        (["c", " !d "], {}),
        (["**/b"], {"a/b": "**/b", "x/a/b": "**/b"}),
        (["x/**/b", "a/**/b"], {"x/a/b": "x/**/b", "a/b": "a/**/b"}),
        (["a" * 256], {}),
        (["x/a"] * 100, {"x/a/b": "x/a"}),
        ([], {}),
    ],
)
def test_excluded_path_comes_with_the_pattern_that_decided(
    patterns: list[str], excluded: dict[str, str]
) -> None:
    assert excluded_paths({"a/b": b"", "x/a/b": b"", "c/d": b""}, patterns) == excluded


@pytest.mark.parametrize("pattern", ["", "/", "!", "..", "../x", "a/../b", "a\\b", "a/./b"])
def test_invalid_pattern(pattern: str) -> None:
    with pytest.raises(PlanError) as raised:
        excluded_paths(FILES, ["x", pattern])
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"build.exclude: {pattern!r} is not a valid pattern for paths of the source",
        'For example: "tests", "data/*.csv", "**/notes.md", "!data/small.csv".',
    )


@pytest.mark.parametrize(
    ("patterns", "message", "hint"),
    [
        (["x" * 257], "build.exclude has a pattern of 257 characters", "Use at most 256."),
        (
            ["x"] * 101,
            "build.exclude has 101 patterns",
            "Use at most 100; exclude directories instead of files.",
        ),
    ],
)
def test_patterns_are_limited_in_length_and_number(patterns: list[str], message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        excluded_paths(FILES, patterns)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == ("ConfigInvalid", message, hint)


@given(st.lists(st.text("ab*?/!.[]", min_size=1, max_size=12), max_size=5))
def test_any_pattern(patterns: list[str]) -> None:
    try:
        excluded = excluded_paths({"a/b.a": b"", "a": b"", "b/a/b": b""}, patterns)
    except PlanError as error:
        assert error.reason == "ConfigInvalid"
    else:
        assert set(excluded.values()) <= set(patterns)


def test_many_stars_are_fast() -> None:
    assert excluded_paths({"a" * 250: b""}, ["*a" * 120 + "b", "**/" * 60 + "b"]) == {}


CONFIGURATION = b'[deployment]\nentrypoint = "pkg.crew:go"\n[build]\nexclude = %s\n'


def test_error_for_an_excluded_entrypoint() -> None:
    files = {"crew.toml": CONFIGURATION % b'["src"]', "src/pkg/crew.py": b"def go(): ...\n"}
    with pytest.raises(PlanError) as raised:
        make_plan(files, None, ["3.11"])
    assert raised.value.reason == "EntrypointNotFound"
    assert "src/pkg/crew.py" in raised.value.message
    assert "excluded by the pattern 'src'" in raised.value.message
    assert '"!src/pkg/crew.py"' in raised.value.hint


def test_plan_ignores_excluded_files() -> None:
    files = {
        "crew.toml": CONFIGURATION % b'["requirements.txt", "crew.toml"]',
        "pkg/crew.py": b"def go(): ...\n",
        "requirements.txt": b"langgraph\n",
        "pyproject.toml": b"[project]\ndependencies = ['crewai']\n",
    }
    planned = make_plan(files, None, ["3.11"])
    assert planned.declaration.lines == ("crewai",)
    assert set(planned.excluded) == {"requirements.txt", "crew.toml"}
