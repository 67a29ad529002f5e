"""The certificate of the TLS port: loaded at the start, and again when its files change.

The files are those of a mounted Secret of the type kubernetes.io/tls, which cert-manager or an administrator
replaces. Called by `internal_tls.settings`, `internal_tls.site` and the start of both processes.
"""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from internal_tls.reload import ReloadedFiles

CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"


class CertificateInvalid(ValueError):
    """The files do not contain a certificate with its key; the message says why."""


@dataclass(frozen=True)
class ServerCertificate:
    """A certificate with its key, ready to serve."""

    context: ssl.SSLContext
    expires_at: datetime


def read(directory: Path) -> tuple[bytes, bytes]:
    """Return the bytes of certificate and key. Raises CertificateInvalid."""
    try:
        return (directory / CERTIFICATE_FILE).read_bytes(), (directory / KEY_FILE).read_bytes()
    except OSError as error:
        raise CertificateInvalid(
            f"{error.filename} is not readable ({error.strerror}); mount a Secret with "
            f"{CERTIFICATE_FILE} and {KEY_FILE} there"
        ) from error


def load(directory: Path, content: tuple[bytes, bytes] | None = None) -> ServerCertificate:
    """Return the certificate of the directory, also an expired one. Raises CertificateInvalid.

    `content` are the bytes of its files, if they were read before.
    """
    certificate, _ = content or read(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(directory / CERTIFICATE_FILE, directory / KEY_FILE, password="")
        expires_at = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CertificateInvalid(
            f"{directory} has no certificate with its unencrypted key in PEM ({error}); "
            f"put both into {CERTIFICATE_FILE} and {KEY_FILE}"
        ) from error
    return ServerCertificate(context, expires_at)


class CertificateFiles(ReloadedFiles[tuple[bytes, bytes], ServerCertificate]):
    """The certificate that is served. A new one that is invalid changes nothing."""

    def __init__(self, directory: Path) -> None:
        """Load the certificate. Raises CertificateInvalid."""
        super().__init__(lambda: read(directory), lambda content: load(directory, content))

    def is_expired(self, now: datetime | None = None) -> bool:
        """Return whether pods refuse the served certificate because of its age."""
        return (now or datetime.now(UTC)) >= self.current.expires_at
