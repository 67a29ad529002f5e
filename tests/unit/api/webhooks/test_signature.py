"""Signatures of deliveries: every modified or forged one is rejected."""

import hashlib
import hmac
import random

import pytest
from multidict import CIMultiDict

from api.webhooks.signature import parse_proof, verify

SECRET = "It's a Secret to Everybody"
BODY = b'{"ref": "refs/heads/main", "repository": {"full_name": "team/research"}}'


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def accepted(headers: dict[str, str], body: bytes = BODY, secret: str = SECRET) -> bool:
    return verify(parse_proof(CIMultiDict(headers)), secret, digest(body, secret))


def test_signature_example_of_github_documentation():
    headers = {
        "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    }
    assert accepted(headers, b"Hello, World!")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Hub-Signature-256": f"sha256={digest(BODY)}"},
        {"x-gitea-signature": digest(BODY), "X-Hub-Signature-256": f"sha256={digest(BODY)}"},
        {"X-Forgejo-Signature": digest(BODY)},
        {"X-Gitlab-Token": SECRET},
    ],
)
def test_proofs_of_all_hosts_are_accepted(headers):
    assert accepted(headers)
    assert not accepted(headers, secret="another")
    assert not accepted(headers, secret="")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature": f"sha1={digest(BODY)[:40]}"},
        {"X-Hub-Signature-256": digest(BODY)},
        {"X-Hub-Signature-256": f"sha1={digest(BODY)}"},
        {"X-Hub-Signature-256": f"sha256={digest(BODY).upper()}"},
        {"X-Hub-Signature-256": f"sha256={digest(BODY)} "},
        {"X-Hub-Signature-256": f"sha256={digest(BODY)}", "X-Gitea-Signature": "0" * 64},
        {"X-Hub-Signature-256": f"sha256={digest(BODY)}", "X-Gitlab-Token": "wrong"},
        {"X-Gitlab-Token": ""},
        {"X-Gitlab-Token": SECRET * 100},
        {"X-Gitea-Signature": ""},
        {"X-Gitea-Signature": digest(b"")},
    ],
)
def test_partial_proof_is_rejected(headers):
    assert not accepted(headers)


@pytest.mark.parametrize("headers", [{}, {"X-Hub-Signature": "sha1=0"}, {"X-Gitea-Signature": "0"}])
def test_no_proof_is_known_before_the_body_is_read(headers):
    assert parse_proof(CIMultiDict(headers)) is None


def test_longest_token():
    for length, matches in ((1024, True), (1025, False)):
        assert accepted({"X-Gitlab-Token": "x" * length}, secret="x" * length) is matches


def test_empty_secret_never_matches():
    for headers in ({"X-Gitlab-Token": ""}, {"X-Hub-Signature-256": f"sha256={digest(BODY, '')}"}):
        assert not accepted(headers, secret="")


def mutated(draw: random.Random, good: bytes) -> bytes:
    """Return the bytes with one to three changes, deletions, insertions or moves."""
    found = bytearray(good)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(found))
        match draw.randrange(4):
            case 0:
                found[at] ^= 1 << draw.randrange(8)
            case 1:
                del found[at]
            case 2:
                found.insert(at, draw.randrange(256))
            case 3:
                found[at:], found[:at] = found[:at], found[at:]
    return bytes(found)


def test_100_000_mutations_are_rejected():
    draw, good = random.Random(9), digest(BODY)
    taken = tried = 0
    while tried < 100_000:
        kind = draw.randrange(3)
        whole = (BODY, good.encode(), SECRET.encode())[kind]
        changed = mutated(draw, whole)
        if changed == whole:
            continue
        tried += 1
        if kind == 0:
            headers = {"X-Hub-Signature-256": f"sha256={good}"}
            taken += verify(parse_proof(headers), SECRET, digest(changed))
        elif kind == 1:
            headers = {"X-Gitea-Signature": changed.decode("latin-1")}
            taken += verify(parse_proof(headers), SECRET, good)
        else:
            headers = {"X-Gitlab-Token": changed.decode("utf-8", "surrogateescape")}
            taken += verify(parse_proof(headers), SECRET, good)
    assert taken == 0
