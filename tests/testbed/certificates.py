"""Certificates for tests of TLS, valid for two days: self-signed, and of an authority."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, both PEM."""

    text: str
    key: str = field(repr=False)


def certificate(name: str) -> Certificate:
    """Return a new self-signed certificate of the host `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(
        made.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(serialization.Encoding.PEM, *form).decode(),
    )


class TestAuthority:
    """A new authority; `text` is its own certificate, PEM."""

    __test__ = False

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name("authority of a test")
        self.text = _pem(self._signed(self._name, self._key.public_key(), x509.BasicConstraints(True, None)))

    def issue(self, *names: str, expired: bool = False) -> Certificate:
        """Return a new certificate of these host names; an expired one was valid until a minute ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        made = self._signed(
            _common_name(names[0]), key.public_key(), x509.BasicConstraints(False, None), alternatives,
            expires=timedelta(minutes=-1) if expired else timedelta(days=1),
        )  # fmt: skip
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return Certificate(_pem(made), key.private_bytes(serialization.Encoding.PEM, *form).decode())

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *extensions: x509.ExtensionType,
        expires: timedelta = timedelta(days=1),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject).issuer_name(self._name).public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1)).not_valid_after(now + expires)
        )  # fmt: skip
        # As every common tool does: they tell authorities of one name apart.
        key_ids = (
            x509.SubjectKeyIdentifier.from_public_key(key),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
        )
        for extension in (*extensions, *key_ids):
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())


def store(directory: Path, served: Certificate) -> None:
    """Write a certificate and its key as a mounted Secret has them."""
    directory.mkdir(exist_ok=True)
    (directory / "tls.crt").write_text(served.text)
    (directory / "tls.key").write_text(served.key)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
