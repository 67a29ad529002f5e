"""Which keys a known_hosts text pins, held against OpenSSH's own reading of it."""

import base64
import hashlib
import hmac
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.git.host_key import HostKey
from egress.git.known_hosts import line, pinned


def key(letter: str, kind: bytes = b"ssh-ed25519") -> HostKey:
    return HostKey(len(kind).to_bytes(4, "big") + kind + b"\0\0\0\x20" + letter.encode() * 32)


def entry(names: str, one: HostKey, marker: str = "") -> str:
    return f"{marker}{names} {one.kind} {base64.b64encode(one.blob).decode()} a comment\n"


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


A, B, C = key("a"), key("b"), key("c", b"ssh-rsa")


@pytest.mark.parametrize(
    ("text", "host", "port", "found"),
    [
        (entry("git.example.org", A), "git.example.org", 22, (A,)),
        (entry("git.example.org", A), "GIT.example.org", 22, (A,)),
        (entry("git.example.org", A), "other.example.org", 22, ()),
        (entry("git.example.org,192.0.2.1", A), "192.0.2.1", 22, (A,)),
        (entry("git.example.org", A) + entry("git.example.org", C), "git.example.org", 22, (A, C)),
        (entry("[git.example.org]:2222", A), "git.example.org", 2222, (A,)),
        (entry("[git.example.org]:2222", A), "git.example.org", 22, ()),
        (entry("git.example.org", A), "git.example.org", 2222, (A,)),
        (entry("git.example.org", A) + entry("[git.example.org]:2222", B), "git.example.org", 2222, (B,)),
        (entry("*.example.org", A), "git.example.org", 22, (A,)),
        (entry("*.example.org,!git.example.org", A), "git.example.org", 22, ()),
        (entry("gi?.example.org", A), "git.example.org", 22, (A,)),
        (entry("[*.example.org]:*", A), "git.example.org", 2222, (A,)),
        (entry(hashed("git.example.org"), A), "git.example.org", 22, (A,)),
        (entry(hashed("[git.example.org]:2222"), A), "git.example.org", 2222, (A,)),
        (entry(hashed("git.example.org"), A), "other.example.org", 22, ()),
        (entry("g", A) + entry("g", A, "@revoked "), "g", 22, ()),
        (entry("g", A) + entry("g", B, "@revoked "), "g", 22, (A,)),
        (entry("[g]:5", A, "@revoked ") + entry("g", A), "g", 5, ()),
        (entry("g", A, "@cert-authority "), "g", 22, ()),
        (entry("g", A, "# "), "g", 22, ()),
        ("g ssh-rsa " + base64.b64encode(A.blob).decode(), "g", 22, ()),
        ("g ssh-ed25519 not-base64\n\n@\n|1|x ssh-ed25519 AAAA\ng\n", "g", 22, ()),
        ("", "g", 22, ()),
    ],
)
def test_the_keys_of_a_host(text, host, port, found):
    assert pinned(text, host, port) == found


@given(st.text())
def test_no_text_is_too_odd(text):
    assert pinned(text, "git.example.org", 22) == ()


def test_a_line_is_read_as_it_was_written():
    assert pinned(line("127.0.0.1", 4711, A), "127.0.0.1", 4711) == (A,)


def test_what_ssh_keygen_hashes_is_found_and_fingerprints_are_its_own(tmp_path):
    file = tmp_path / "known"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    kind, blob = (tmp_path / "key.pub").read_text().split()[:2]
    file.write_text(f"git.example.org {kind} {blob}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "git.example.org" not in file.read_text()
    (found,) = pinned(file.read_text(), "git.example.org", 22)
    said = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], check=True, capture_output=True
    )
    assert found.fingerprint == said.stdout.decode().split()[1]
