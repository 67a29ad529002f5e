"""What `[build] exclude` leaves out, and what that does to plan, hash and messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.errors import PlanError
from plan.exclude import left_out
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
    ("patterns", "gone"),
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
def test_patterns(patterns: list[str], gone: str) -> None:
    assert set(left_out(FILES, patterns)) == set(gone.split())


def test_all_but_one_directory() -> None:
    assert set(FILES) - set(left_out(FILES, ["*", "!src"])) == {"src/pkg/tests/test_pkg.py"}


@pytest.mark.parametrize("pattern", ["", "/", "!", "..", "../x", "a/../b", "a\\b", "a/./b", "x" * 300])
def test_what_is_no_pattern_is_said(pattern: str) -> None:
    with pytest.raises(PlanError) as raised:
        left_out(FILES, [pattern])
    assert raised.value.reason == "ConfigInvalid"
    assert "build.exclude" in raised.value.message


def test_too_many_patterns() -> None:
    with pytest.raises(PlanError, match="101 patterns"):
        left_out(FILES, ["x"] * 101)


@given(st.lists(st.text("ab*?/!.[]", min_size=1, max_size=12), max_size=5))
def test_any_pattern_ends_in_an_answer(patterns: list[str]) -> None:
    try:
        gone = left_out({"a/b.a": b"", "a": b"", "b/a/b": b""}, patterns)
    except PlanError as error:
        assert error.reason == "ConfigInvalid"
    else:
        assert set(gone.values()) <= set(patterns)


def test_stars_upon_stars_cost_little() -> None:
    assert left_out({"a" * 250: b""}, ["*a" * 120 + "b", "**/" * 60 + "b"]) == {}


CONFIGURATION = b'[deployment]\nentrypoint = "pkg.crew:go"\n[build]\nexclude = %s\n'


def test_an_excluded_entrypoint_is_told_apart_from_a_missing_one() -> None:
    files = {"crew.toml": CONFIGURATION % b'["src"]', "src/pkg/crew.py": b"def go(): ...\n"}
    with pytest.raises(PlanError) as raised:
        make_plan(files, None, ["3.11"])
    assert raised.value.reason == "EntrypointNotFound"
    assert "src/pkg/crew.py" in raised.value.message
    assert "excluded by the pattern 'src'" in raised.value.message
    assert '"!src/pkg/crew.py"' in raised.value.hint


def test_the_plan_knows_nothing_of_what_is_excluded() -> None:
    files = {
        "crew.toml": CONFIGURATION % b'["requirements.txt", "crew.toml"]',
        "pkg/crew.py": b"def go(): ...\n",
        "requirements.txt": b"langgraph\n",
        "pyproject.toml": b"[project]\ndependencies = ['crewai']\n",
    }
    planned = make_plan(files, None, ["3.11"])
    assert planned.declaration.lines == ("crewai",)
    assert set(planned.left_out) == {"requirements.txt", "crew.toml"}
