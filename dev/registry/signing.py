"""RS256 signatures of registry tokens, with a key that openssl generates once.

The standard library has no signatures, but big integers; the dev cluster's processes use no other packages.
Called by `dev.registry.token_server`.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dev import files
from dev.packages import program_path
from dev.process import command
from dev.settings import Settings

_CERTIFICATE_DAYS = 36500
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
"""The DigestInfo prefix of a SHA-256 (PKCS #1, version 1.5)."""


@dataclass(frozen=True)
class TokenSigner:
    """An RSA key in Chinese remainder form, and its key id in the registry."""

    name: str
    modulus: int
    primes: tuple[int, int]
    exponents: tuple[int, int]
    coefficient: int

    def signature(self, data: bytes) -> bytes:
        """Return the signature of `data`."""
        size = (self.modulus.bit_length() + 7) // 8
        digest_info = _SHA256 + hashlib.sha256(data).digest()
        padded = b"\0\1" + b"\xff" * (size - len(digest_info) - 3) + b"\0" + digest_info
        message, (p, q) = int.from_bytes(padded, "big"), self.primes
        m_p, m_q = pow(message, self.exponents[0], p), pow(message, self.exponents[1], q)
        signed = m_q + q * (self.coefficient * (m_p - m_q) % p)
        return signed.to_bytes(size, "big")

    def token(self, claims: Mapping[str, object]) -> str:
        """Return a JSON Web Token with these claims."""
        header = {"typ": "JWT", "alg": "RS256", "kid": self.name}
        body = ".".join(
            _encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims)
        )
        return f"{body}.{_encoded(self.signature(body.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def certificate_file(settings: Settings) -> Path:
    """Return the certificate by which the registry identifies the key."""
    return settings.data / "registry-tokens.crt"


def key_file(settings: Settings) -> Path:
    """Return the file of the private key."""
    return settings.data / "registry-tokens.key"


def ensure(settings: Settings) -> TokenSigner:
    """Return the signer; create key and certificate if absent. Raises CommandFailed."""
    certificate, key = certificate_file(settings), key_file(settings)
    if not (certificate.exists() and key.exists()):
        settings.data.mkdir(parents=True, exist_ok=True)
        make(certificate, key)
    return read(certificate, key)


def make(certificate: Path, key: Path) -> None:
    """Generate a key and its self-signed certificate. Raises CommandFailed."""
    openssl = program_path("openssl")
    key.unlink(missing_ok=True)
    key.touch(mode=0o600)
    command.read_output([openssl, "genrsa", "-traditional", "-out", str(key), "2048"])
    subject = ["-subj", "/CN=crewyard registry tokens", "-days", str(_CERTIFICATE_DAYS)]
    # Without -out, openssl prints it: an interrupted call leaves no incomplete certificate.
    text = command.read_output([openssl, "req", "-x509", "-new", "-key", str(key), *subject])
    files.write(certificate, text)


def read(certificate: Path, key: Path) -> TokenSigner:
    """Return the signer of a key file and its certificate. Raises CommandFailed."""
    public = command.read_output(
        [program_path("openssl"), "x509", "-pubkey", "-noout", "-in", str(certificate)]
    )
    _, modulus, _, _, p, q, d_p, d_q, coefficient = _integers(_der(key.read_text()))
    return TokenSigner(key_name(_der(public)), modulus, (p, q), (d_p, d_q), coefficient)


def key_name(public: bytes) -> str:
    """Return the key id of a public key (DER): 240 bits of its hash, twelve groups of four letters."""
    text = base64.b32encode(hashlib.sha256(public).digest()[:30]).decode()
    return ":".join(text[start : start + 4] for start in range(0, len(text), 4))


def _der(pem: str) -> bytes:
    lines = [line for line in pem.splitlines() if line and not line.startswith("-----")]
    return base64.b64decode("".join(lines))


def _integers(der: bytes) -> Iterator[int]:
    """Yield the integers of a DER sequence."""
    _, content, _ = _element(der)
    while content:
        _, number, content = _element(content)
        yield int.from_bytes(number, "big")


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first DER element, and the remaining bytes."""
    size, start = der[1], 2
    if size & 0x80:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(der[2:start], "big")
    return der[0], der[start : start + size], der[start + size :]
