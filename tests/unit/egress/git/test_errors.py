"""Classification of messages of libgit2 and git hosts; other tests check the texts against real servers."""

import pytest

from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind, classify, classify_text, keyscan_command
from egress.git.remote import relay_for


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("unexpected http status code: 401", GitErrorKind.AUTH),
        ("unexpected http status code: 403", GitErrorKind.AUTH),
        ("Failed to authenticate SSH session: x", GitErrorKind.AUTH),
        ("authentication required but no callback set", GitErrorKind.AUTH),
        ("credentials callback returned an invalid cred type", GitErrorKind.AUTH),
        ("ERROR: Permission denied to deploy key", GitErrorKind.AUTH),
        (
            "failed to authenticate SSH session: Unable to extract public key from private key file: x",
            GitErrorKind.IDENTITY,
        ),
        ("unexpected http status code: 404", GitErrorKind.REPOSITORY_NOT_FOUND),
        ("unexpected http status code: 410", GitErrorKind.REPOSITORY_NOT_FOUND),
        ("ERROR: Repository not found.\n", GitErrorKind.REPOSITORY_NOT_FOUND),
        (
            "ERROR: The project you were looking for could not be found or you don't have permission",
            GitErrorKind.REPOSITORY_NOT_FOUND,
        ),
        ("Gitea: Cannot find repository: a/b", GitErrorKind.REPOSITORY_NOT_FOUND),
        ("fatal: '/x' does not appear to be a git repository\n", GitErrorKind.REPOSITORY_NOT_FOUND),
        ("conq: repository does not exist.", GitErrorKind.REPOSITORY_NOT_FOUND),
        ("invalid content-type: text/html", GitErrorKind.NOT_GIT),
        ("bad packet length", GitErrorKind.NOT_GIT),
        ("invalid packet line", GitErrorKind.NOT_GIT),
        ("unknown remote object format 'sha256'", GitErrorKind.SHA256),
        ("unexpected packet type", GitErrorKind.COMMIT_NOT_FOUND),
        ("upload-pack: not our ref 1111", GitErrorKind.COMMIT_NOT_FOUND),
        ("cannot fetch a specific object from the remote repository", GitErrorKind.COMMIT_NOT_FOUND),
        ("unexpected http status code: 502", GitErrorKind.UNAVAILABLE),
        ("connection reset", GitErrorKind.UNAVAILABLE),
        ("", GitErrorKind.UNAVAILABLE),
    ],
)
def test_classify_text(text, kind):
    assert classify_text(text) is kind


URL = "https://git.example.org/x"


@pytest.mark.parametrize(
    ("observed", "kind", "detail"),
    [
        ({}, GitErrorKind.AUTH, ""),
        (
            {"refused_addresses": ["x is a loopback address"]},
            GitErrorKind.ADDRESS_REFUSED,
            "x is a loopback address",
        ),
        ({"certificate_errors": ["x: expired"]}, GitErrorKind.CERTIFICATE, "x: expired"),
        ({"unresolved_hosts": ["x"]}, GitErrorKind.HOST_NOT_FOUND, ""),
        ({"size_exceeded": True, "refused_addresses": ["x"]}, GitErrorKind.TOO_LARGE, ""),
    ],
)
def test_observations_of_the_relay_take_precedence(observed, kind, detail):
    relay = relay_for(URL, AddressRules.parse([], []), GitCredentials())
    for name, value in observed.items():
        setattr(relay, name, value)
    with relay:
        failure = classify(ValueError("unexpected http status code: 401"), URL, GitCredentials(), relay)
    assert (failure.kind, failure.detail) == (kind, detail)


def test_keyscan_command():
    assert keyscan_command("ssh://git@git.example.org/x") == "ssh-keyscan git.example.org"
    assert keyscan_command("ssh://git@git.example.org:2222/x") == "ssh-keyscan -p 2222 git.example.org"
