"""The input `exclude` and `[build] exclude`: the same syntax, and read as the service reads it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actions.workflow.errors import StepFailed
from actions.workflow.source.configured_exclude import CONFIGURATION_FILES, configured_exclude
from actions.workflow.source.exclude_patterns import ExcludePatterns
from plan.config import configuration
from plan.errors import PlanError
from plan.exclude import excluded_paths

PATTERNS = st.text(alphabet="ab.*?[]!-/", min_size=1, max_size=8)
PARTS = st.text(alphabet="ab.-]", min_size=1, max_size=3).filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@given(st.lists(PATTERNS, max_size=3), st.lists(PATHS, max_size=5))
@example(["a/", "!a"], ["a/b"])
@example(["[", "[!", "[]a]"], ["[", "]", "a"])
def test_patterns_match_like_those_of_the_configuration(patterns, paths):
    try:
        theirs = excluded_paths(dict.fromkeys(paths, b""), patterns)
    except PlanError:
        with pytest.raises(StepFailed):
            ExcludePatterns(patterns)
        return
    ours = ExcludePatterns(patterns)
    assert {path for path in paths if ours.excludes(path)} == set(theirs)


OWN = '[build]\nexclude = ["a"]\n'
ARTIFACTS = '[artifacts]\ninclude = ["out/**"]\n'
TOOL = '[tool.crewyard.build]\nexclude = ["b"]\n'


@pytest.mark.parametrize(
    "files",
    [
        {"crew.toml": OWN},
        {"crew.toml": f"\ufeff{OWN}"},
        {"crewship.toml": OWN},
        {"pyproject.toml": TOOL},
        {"crew.toml": OWN, "pyproject.toml": TOOL},
        {"crew.toml": ARTIFACTS, "pyproject.toml": TOOL},
        {"crew.toml": ARTIFACTS + OWN, "pyproject.toml": TOOL},
        {"crewship.toml": ARTIFACTS, "pyproject.toml": TOOL},
        {"langgraph.json": '{"graphs": {"g": "./main.py:graph"}}', "pyproject.toml": TOOL},
        {"pyproject.toml": "[project]\nname = 'a'\n"},
        {"crew.toml": "[build]\nexclude = ['b', '../a']\n"},
        {"crew.toml": f"[build]\nexclude = {['b'] * 101}\n"},
        {"crew.toml": "[build]\nexclude = 'a'\n"},
        {"crew.toml": "[build\n", "pyproject.toml": TOOL},
        {},
    ],
)
def test_the_action_reads_the_configuration_of_the_service(tmp_path, files):
    paths = ["a", "b", "c/a", "main.py"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    try:
        exclude = configuration.read_configuration(
            {name: text.encode() for name, text in files.items()}, None
        ).exclude
        expected = set(excluded_paths(dict.fromkeys(paths, b""), exclude))
    except PlanError:
        expected = set()
    ours = configured_exclude(tmp_path, files)
    assert {path for path in paths if ours.excludes(path)} == expected


def test_the_files_of_a_configuration_are_those_of_the_service():
    assert CONFIGURATION_FILES == configuration.CONFIGURATION_FILES


def test_the_configuration_of_another_directory_is_not_read(tmp_path):
    (tmp_path / "crew").mkdir()
    (tmp_path / "crew.toml").write_text(OWN)
    (tmp_path / "crew/crew.toml").symlink_to("../crew.toml")
    assert not configured_exclude(tmp_path / "crew", ["crew.toml"]).excludes("a")
