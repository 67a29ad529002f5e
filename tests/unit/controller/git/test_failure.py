"""Git failures have a stable reason and the next step, and contain no secret."""

import re
from pathlib import Path

import pytest

from controller.git.failure import check, problem_of
from controller.git.repository import GitProblem, Remote
from egress.git.errors import GitErrorKind, GitFailure

HTTPS = Remote("https://git.example.org/x.git", "me", "hunter2")
SSH = Remote("ssh://git@git.example.org:2222/x.git", identity="hunter2", known_hosts="hunter2")
KEY = "SHA256:abc (ssh-ed25519)"
SECRET = "the Secret of spec.source.git.secretRef"


@pytest.mark.parametrize(
    ("failure", "remote", "reason", "words"),
    [
        (
            GitFailure(GitErrorKind.AUTH),
            HTTPS,
            "GitAuthFailed",
            ["git.example.org refused access", f"check {SECRET}"],
        ),
        (
            GitFailure(GitErrorKind.AUTH),
            Remote(HTTPS.url),
            "GitAuthFailed",
            ["name a Secret with username and password"],
        ),
        (GitFailure(GitErrorKind.AUTH), SSH, "GitAuthFailed", ["did not take the key", "public half"]),
        (
            GitFailure(GitErrorKind.AUTH),
            Remote(SSH.url),
            "GitAuthFailed",
            ["refused access", "private key into identity"],
        ),
        (GitFailure(GitErrorKind.IDENTITY), SSH, "GitAuthFailed", ["cannot be read", "without a passphrase"]),
        (
            GitFailure(GitErrorKind.REPOSITORY_NOT_FOUND),
            SSH,
            "GitNotFound",
            ["no repository at ssh://git.example.org:2222/x.git"],
        ),
        (
            GitFailure(GitErrorKind.NOT_GIT),
            HTTPS,
            "GitNotFound",
            ["is not a git repository", "spec.source.git.url"],
        ),
        (GitFailure(GitErrorKind.HOST_NOT_FOUND), HTTPS, "GitNotFound", ["git.example.org does not exist"]),
        (GitFailure(GitErrorKind.SHA256), HTTPS, "UnsupportedRepository", ["sha256", "40 digits"]),
        (
            GitFailure(GitErrorKind.ADDRESS_REFUSED, "x is at 10.0.0.1"),
            HTTPS,
            "AddressRefused",
            ["x is at", "CREWYARD_NET_ALLOW"],
        ),
        (
            GitFailure(GitErrorKind.CERTIFICATE, "x: expired"),
            HTTPS,
            "CertificateInvalid",
            ["x: expired", "ca.crt"],
        ),
        (
            GitFailure(GitErrorKind.HOST_KEY_UNKNOWN, KEY),
            SSH,
            "HostKeyUnknown",
            [KEY, "ssh-keyscan -p 2222 git.example.org"],
        ),
        (
            GitFailure(GitErrorKind.HOST_KEY_CHANGED, KEY),
            SSH,
            "HostKeyMismatch",
            [KEY, "not the one in known_hosts"],
        ),
        (GitFailure(GitErrorKind.TIMEOUT), HTTPS, "Unreachable", ["within 60 s"]),
        (GitFailure(GitErrorKind.UNAVAILABLE), HTTPS, "Unreachable", ["will retry"]),
        (GitFailure(GitErrorKind.COMMIT_NOT_FOUND), HTTPS, "Unreachable", ["will retry"]),
    ],
)
def test_failure_names_the_next_step(failure, remote, reason, words):
    problem = problem_of(failure, remote, 60)
    assert (problem.reason, problem.transient) == (reason, reason == "Unreachable")
    assert [word for word in words if word not in problem.message] == []
    assert "hunter2" not in problem.message and len(problem.message) < 800


def test_every_failure_kind_has_a_message():
    assert all(problem_of(GitFailure(kind, KEY), SSH, 60).message for kind in GitErrorKind)


@pytest.mark.parametrize(
    ("url", "ref", "reason"),
    [
        ("file:///etc", {}, "UnsupportedScheme"),
        ("ext::sh -c true", {}, "UnsupportedScheme"),
        ("https://git.example.org/a b", {}, "InvalidUrl"),
        ("ssh://-oProxyCommand=x@git.example.org/a", {}, "InvalidUrl"),
        (HTTPS.url, {"commit": "a" * 64}, "UnsupportedRepository"),
        (HTTPS.url, {"commit": "--upload-pack=true"}, "GitNotFound"),
    ],
)
def test_invalid_source_is_rejected_without_a_request(url, ref, reason):
    with pytest.raises(GitProblem) as error:
        check(Remote(url), ref)
    assert error.value.reason == reason and not error.value.transient
    check(HTTPS, {"commit": "a" * 40})


def test_every_reason_is_explained():
    root = Path(__file__).parents[4]
    places = [
        *root.glob("controller/git/*.py"),
        root / "controller/git/repository.py",
        root / "controller/source/poller.py",
    ]
    reasons = {word for place in places for word in re.findall(r'GitProblem\(\s*"(\w+)"', place.read_text())}
    reasons |= {"HostKeyUnknown", "HostKeyMismatch", "InvalidUrl", "TagNotFound", "BranchNotFound"}
    page = (root / "docs/troubleshooting.md").read_text()
    assert (
        len(reasons) > 12 and [reason for reason in sorted(reasons) if f"\n### {reason}\n" not in page] == []
    )
