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


@pytest.mark.parametrize("pattern", ["", "/", "!", "..", "../x", "a/../b", "a\\b", "a/./b", "x" * 300])
def test_invalid_pattern(pattern: str) -> None:
    with pytest.raises(PlanError) as raised:
        excluded_paths(FILES, [pattern])
    assert raised.value.reason == "ConfigInvalid"
    assert "build.exclude" in raised.value.message


def test_too_many_patterns() -> None:
    with pytest.raises(PlanError, match="101 patterns"):
        excluded_paths(FILES, ["x"] * 101)


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
