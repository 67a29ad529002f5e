"""What libgit2 and the forges say, in one word; other tests hold the texts against real servers."""

import pytest

from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.errors import Kind, keyscan, told, trouble
from egress.git.remote import way


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("unexpected http status code: 401", Kind.AUTH),
        ("unexpected http status code: 403", Kind.AUTH),
        ("Failed to authenticate SSH session: x", Kind.AUTH),
        ("authentication required but no callback set", Kind.AUTH),
        ("credentials callback returned an invalid cred type", Kind.AUTH),
        ("ERROR: Permission denied to deploy key", Kind.AUTH),
        (
            "failed to authenticate SSH session: Unable to extract public key from private key file: x",
            Kind.IDENTITY,
        ),
        ("unexpected http status code: 404", Kind.REPOSITORY),
        ("unexpected http status code: 410", Kind.REPOSITORY),
        ("ERROR: Repository not found.\n", Kind.REPOSITORY),
        (
            "ERROR: The project you were looking for could not be found or you don't have permission",
            Kind.REPOSITORY,
        ),
        ("Gitea: Cannot find repository: a/b", Kind.REPOSITORY),
        ("fatal: '/x' does not appear to be a git repository\n", Kind.REPOSITORY),
        ("conq: repository does not exist.", Kind.REPOSITORY),
        ("invalid content-type: text/html", Kind.NO_GIT),
        ("bad packet length", Kind.NO_GIT),
        ("invalid packet line", Kind.NO_GIT),
        ("unknown remote object format 'sha256'", Kind.SHA256),
        ("unexpected packet type", Kind.COMMIT),
        ("upload-pack: not our ref 1111", Kind.COMMIT),
        ("cannot fetch a specific object from the remote repository", Kind.COMMIT),
        ("unexpected http status code: 502", Kind.AWAY),
        ("connection reset", Kind.AWAY),
        ("", Kind.AWAY),
    ],
)
def test_a_text_in_one_word(text, kind):
    assert told(text) is kind


URL = "https://git.example.org/x"


@pytest.mark.parametrize(
    ("seen", "kind", "detail"),
    [
        ({}, Kind.AUTH, ""),
        ({"refusals": ["x is a loopback address"]}, Kind.ADDRESS, "x is a loopback address"),
        ({"untrusted": ["x: expired"]}, Kind.CERTIFICATE, "x: expired"),
        ({"unknown": ["x"]}, Kind.NO_HOST, ""),
        ({"exceeded": True, "refusals": ["x"]}, Kind.TOO_LARGE, ""),
    ],
)
def test_what_the_way_has_seen_comes_first(seen, kind, detail):
    through = way(URL, Rules.parse([], []), Access())
    for name, value in seen.items():
        setattr(through, name, value)
    with through:
        found = trouble(ValueError("unexpected http status code: 401"), URL, Access(), through)
    assert (found.kind, found.detail) == (kind, detail)


def test_the_command_that_prints_the_keys():
    assert keyscan("ssh://git@git.example.org/x") == "ssh-keyscan git.example.org"
    assert keyscan("ssh://git@git.example.org:2222/x") == "ssh-keyscan -p 2222 git.example.org"
