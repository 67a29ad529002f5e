"""Framework of a crew, and sources that are not Python."""

import pytest

from plan.config.framework import check_framework, check_language, framework_of
from plan.errors import PlanError

ONLY = "Only Python crews can be built; frameworks are crewai, langgraph, python."


@pytest.mark.parametrize("declared", [None, "crewai", "langgraph", "python"])
def test_supported_framework_is_accepted(declared: str | None) -> None:
    check_framework(declared, "crew.toml")


@pytest.mark.parametrize(
    ("declared", "hint"),
    [
        ("langgrph", "Did you mean 'langgraph'?"),
        ("LANGGRAPH", "Did you mean 'langgraph'?"),
        ("langgraph-js", ONLY),
        ("Mastra-TS", ONLY),
        ("next.js", ONLY),
        ("cobol", 'Use "python" for any other framework.'),
    ],
)
def test_other_framework_is_refused_with_the_next_step(declared: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        check_framework(declared, "crew.toml line 2")
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "UnsupportedFramework",
        f"crew.toml line 2 is {declared!r}; supported are crewai, langgraph, python",
        hint,
    )


@pytest.mark.parametrize(
    "paths", [["main.py"], ["package.json", "a/main.py"], ["go.mod", "pyproject.toml"], ["a/go.mod"], []]
)
def test_source_with_python_or_of_no_known_language_is_accepted(paths: list[str]) -> None:
    check_language(dict.fromkeys(paths, b""))


@pytest.mark.parametrize(
    ("paths", "marker", "language"),
    [
        (["package.json", "go.mod"], "package.json", "JavaScript"),
        (["Cargo.toml", "main.pyc"], "Cargo.toml", "Rust"),
    ],
)
def test_source_of_another_language_is_named(paths: list[str], marker: str, language: str) -> None:
    with pytest.raises(PlanError) as raised:
        check_language(dict.fromkeys(paths, b""))
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "UnsupportedFramework",
        f"found {marker} but no Python file: this looks like {language}",
        f"{ONLY} Check spec.source.git.path of the Project, or the directory that you deploy.",
    )


@pytest.mark.parametrize(
    ("declared", "packages", "framework"),
    [
        ("python", ["crewai"], "python"),
        (None, ["langgraph", "crewai"], "crewai"),
        (None, ["langgraph", "rich"], "langgraph"),
        (None, ["rich"], "python"),
    ],
)
def test_declared_framework_comes_before_the_required_packages(
    declared: str | None, packages: list[str], framework: str
) -> None:
    assert framework_of(declared, packages) == framework
