"""Choosing a head, and what a git error means to the owner of the Project."""

import pytest

from controller.repository import GitProblem, Head, Remote, choose, meaning, subject

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
        ({}, Head("HEAD", "1" * 40)),
        ({"branch": "next"}, Head("refs/heads/next", "2" * 40)),
        ({"tag": "v1"}, Head("refs/tags/v1", "4" * 40)),
    ],
)
def test_a_reference_is_found_and_a_tag_means_its_commit(ref, head):
    assert choose(HEADS, ref) == head


@pytest.mark.parametrize(
    ("heads", "ref", "reason", "words"),
    [
        ({}, {}, "EmptyRepository", "push one"),
        (HEADS, {"branch": "x"}, "BranchNotFound", "branches: main, next"),
        (HEADS, {"tag": "x"}, "TagNotFound", "no tag x"),
        ({"refs/heads/other": "1" * 40}, {}, "BranchNotFound", "no default branch"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(heads, ref, reason, words):
    with pytest.raises(GitProblem) as problem:
        choose(heads, ref)
    assert problem.value.reason == reason
    assert words in problem.value.message
    assert not problem.value.passing


@pytest.mark.parametrize(
    ("text", "unknown", "reason", "passing"),
    [
        ("unexpected http status code: 401", False, "GitAuthFailed", False),
        ("authentication is required", False, "GitAuthFailed", False),
        ("unexpected http status code: 404", False, "GitNotFound", False),
        ("invalid content-type: text/html", False, "GitNotFound", False),
        ("failed to resolve address", True, "GitNotFound", False),
        ("unexpected http status code: 502", False, "Unreachable", True),
        ("connection reset", False, "Unreachable", True),
    ],
)
def test_errors_are_told_apart(text, unknown, reason, passing):
    remote = Remote("https://git.example.org/x.git", "me", "hunter2")
    problem = meaning(text, remote, unknown)
    assert (problem.reason, problem.passing) == (reason, passing)
    assert "hunter2" not in problem.message


def test_a_subject_is_one_printable_line():
    assert subject("\n\nFix\x1b[31m it\u2028\nbody") == "Fix [31m it"
    assert len(subject("x" * 5000)) == 500
    assert subject("") == ""
