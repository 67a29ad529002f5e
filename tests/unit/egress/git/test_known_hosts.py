"""Keys that a known_hosts text pins, compared with OpenSSH's own results."""

import base64
import hashlib
import hmac
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.git.host_key import HostKey
from egress.git.known_hosts import known_hosts_line, pinned_keys


def key(letter: str, kind: bytes = b"ssh-ed25519") -> HostKey:
    return HostKey(len(kind).to_bytes(4, "big") + kind + b"\0\0\0\x20" + letter.encode() * 32)


def entry(names: str, host_key: HostKey, marker: str = "") -> str:
    return f"{marker}{names} {host_key.algorithm} {base64.b64encode(host_key.blob).decode()} a comment\n"


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


A, B, C = key("a"), key("b"), key("c", b"ssh-rsa")


@pytest.mark.parametrize(
    ("text", "host", "port", "keys"),
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
def test_pinned_keys(text, host, port, keys):
    assert pinned_keys(text, host, port) == keys


@given(st.text())
def test_any_text_is_accepted(text):
    assert pinned_keys(text, "git.example.org", 22) == ()


def test_known_hosts_line_round_trip():
    assert pinned_keys(known_hosts_line("127.0.0.1", 4711, A), "127.0.0.1", 4711) == (A,)


def test_hashes_and_fingerprints_of_ssh_keygen(tmp_path):
    file = tmp_path / "known"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    kind, blob = (tmp_path / "key.pub").read_text().split()[:2]
    file.write_text(f"git.example.org {kind} {blob}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "git.example.org" not in file.read_text()
    (pinned,) = pinned_keys(file.read_text(), "git.example.org", 22)
    printed = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], check=True, capture_output=True
    )
    assert pinned.fingerprint == printed.stdout.decode().split()[1]
