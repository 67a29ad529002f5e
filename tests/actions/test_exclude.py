"""The input `exclude` and `[build] exclude` of crew.toml have the same syntax."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actions.workflow.errors import StepFailed
from actions.workflow.source.exclude_patterns import ExcludePatterns
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
