"""Choosing a head, and what is shown of a commit."""

import pytest

from controller.git.repository import GitProblem, RemoteHead, choose_head

HEADS = {
    "HEAD": "1" * 40,
    "refs/heads/main": "1" * 40,
    "refs/heads/next": "2" * 40,
    "refs/tags/v1": "3" * 40,
    "refs/tags/v1^{}": "4" * 40,
}


@pytest.mark.parametrize(
    ("ref", "head"),
    [
        ({}, RemoteHead("HEAD", "1" * 40)),
        ({"branch": "next"}, RemoteHead("refs/heads/next", "2" * 40)),
        ({"tag": "v1"}, RemoteHead("refs/tags/v1", "4" * 40)),
    ],
)
def test_reference_is_found_and_a_tag_resolves_to_its_commit(ref, head):
    assert choose_head(HEADS, ref) == head


@pytest.mark.parametrize(
    ("heads", "ref", "reason", "words"),
    [
        ({}, {}, "EmptyRepository", "push one"),
        (HEADS, {"branch": "x"}, "BranchNotFound", "branches: main, next"),
        (HEADS, {"tag": "x"}, "TagNotFound", "no tag x"),
        ({"refs/heads/other": "1" * 40}, {}, "BranchNotFound", "no default branch"),
    ],
)
def test_missing_reference_error_lists_existing_ones(heads, ref, reason, words):
    with pytest.raises(GitProblem) as problem:
        choose_head(heads, ref)
    assert problem.value.reason == reason
    assert words in problem.value.message
    assert not problem.value.transient
