"""Files of a crew beside its artifacts: kept if it or a configuration names them, else reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.pid1.artifacts.outside import IncludePattern, warning

WRITES = """
    import os
    def kickoff():
        os.makedirs("output/deep")
        for name in ("report.md", "output/post.md", "output/deep/a.json", "scratch.txt", "artifacts/own.txt"):
            with open(name, "w") as file:
                file.write(name)
        with open("committed.md", "a") as file:
            file.write(", changed")
"""


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.md", ["a.md", "x/y/a.md"], ["a.mdx", "md"]),
        ("/a.md", ["a.md"], ["x/a.md"]),
        ("output/**", ["output/a", "output/x/y"], ["outputs/a", "x/output/a", "output"]),
        ("output", ["output/a", "x/output/b", "output"], ["outputs/a"]),
        ("./output/**", ["output/a", "output/x/y"], ["outputs/a", "x/output/a", "output"]),
        (" output//post ", ["output/post"], ["output/a"]),
        ("/", [], ["a", "output/a"]),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "a.md"]),
        ("**/cache/*", ["cache/a", "x/y/cache/a"], ["cache"]),
        ("a?[0-9].txt", ["ab1.txt"], ["a/1.txt", "abc.txt"]),
        ("a.b", ["a.b"], ["axb"]),
        ("/".join(["**", "a"] * 100), ["a/" * 150 + "a"], ["a/" * 80 + "b"]),
    ],
)
def test_patterns_follow_the_rules_of_exclude(pattern: str, matching: list[str], others: list[str]) -> None:
    included = IncludePattern(pattern)
    assert [name for name in matching if not included.matches(name)] == []
    assert [name for name in others if included.matches(name)] == []


def test_the_warning_is_bounded_and_has_the_line_that_keeps_the_files() -> None:
    text = warning([f"out/{number}" for number in range(20)] + ["report.md"])
    assert "out/0, out/1," in text and " and 11 more." in text
    assert text.endswith('[artifacts] include = ["out/**", "/report.md"]')
    many = warning([f"{number}{'x' * 500}" for number in range(100_000)])
    assert len(many) < 6000


@pytest.mark.parametrize("name", ["report[1].md", "a*[!b]?.md", "out [1]/a.md", "!own.md", "!out/a.md"])
def test_the_line_that_keeps_a_file_matches_it_alone(name: str) -> None:
    [pattern] = json.loads(warning([name]).partition("include = ")[2])
    assert IncludePattern(pattern).matches(name) and not pattern.startswith("!")
    assert not IncludePattern(pattern).matches(name.replace("[", "").replace("!", "").replace("*", "x"))


async def test_files_elsewhere_are_named_in_one_warning(pod: Any, api: Any) -> None:
    pod.crew("committed", "committed.md")
    pod.crew("untouched", "untouched.md")
    pod.crew(WRITES)
    await pod.run()
    assert api.result["outcome"] == "succeeded"
    assert list(api.artifacts) == ["own.txt"]
    [text] = api.logs("warning")
    assert "committed.md, output/deep/a.json, output/post.md, report.md, scratch.txt." in text
    line = text[text.index("[artifacts] include = ") + len("[artifacts] include = ") :]
    assert json.loads(line) == ["/committed.md", "output/**", "/report.md", "/scratch.txt"]


async def test_included_files_become_artifacts_also_of_a_failed_run(pod: Any, api: Any) -> None:
    api.include = ["/report.md", "output/**", "*.none"]
    pod.crew(WRITES + "        raise ValueError('late')\n")
    await pod.run()
    assert api.result["outcome"] == "failed"
    assert {name: versions[-1].body for name, versions in api.artifacts.items()} == {
        "own.txt": b"artifacts/own.txt",
        "report.md": b"report.md",
        "output/post.md": b"output/post.md",
        "output/deep/a.json": b"output/deep/a.json",
    }
    [text] = api.logs("warning")
    assert "not stored: committed.md, scratch.txt." in text


async def test_a_declared_file_becomes_an_artifact_and_replaces_none(pod: Any, api: Any) -> None:
    pod.crew(
        """
        from crewyard_runtime.frameworks import crewai_events
        def kickoff():
            for name in ("report.md", "both.md", "artifacts/both.md"):
                with open(name, "w") as file:
                    file.write(name)
            for name in ("report.md", "./both.md", "../outside", "/etc/passwd", "missing.md"):
                crewai_events.declared_files[name] = None
        """
    )
    await pod.run()
    bodies = {name: versions[-1].body for name, versions in api.artifacts.items()}
    assert bodies == {"report.md": b"report.md", "both.md": b"artifacts/both.md"}
    [text] = api.logs("warning")
    assert "not stored: both.md." in text
