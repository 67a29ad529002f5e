"""Certificates in files: what is loaded, what is rejected, what a change does."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from internal_tls.certificate import CertificateFiles, CertificateInvalid, load
from tests.testbed.certificates import TestAuthority, store


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store(tmp_path / "tls", TestAuthority().issue("a.example.com"))
    return tmp_path / "tls"


def test_certificate_is_loaded_with_its_end(directory: Path) -> None:
    loaded = load(directory)
    assert isinstance(loaded.context, ssl.SSLContext)
    assert abs(loaded.expires_at - datetime.now(UTC) - timedelta(days=1)) < timedelta(minutes=5)


def test_older_versions_of_tls_are_refused(directory: Path) -> None:
    assert load(directory).context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("text", [None, "", "x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"])
def test_missing_and_damaged_files_are_named(directory: Path, name: str, text: str | None) -> None:
    if text is None:
        (directory / name).unlink()
    else:
        (directory / name).write_text(text)
    with pytest.raises(CertificateInvalid, match=name):
        load(directory)


def test_key_of_another_certificate_is_rejected(directory: Path) -> None:
    (directory / "tls.key").write_text(TestAuthority().issue("a.example.com").key)
    with pytest.raises(CertificateInvalid, match="KEY_VALUES_MISMATCH"):
        load(directory)


def test_expired_certificate_is_loaded_and_known(directory: Path) -> None:
    store(directory, TestAuthority().issue("a.example.com", expired=True))
    assert CertificateFiles(directory).is_expired()


def test_refresh_tells_news_once_and_keeps_what_is_valid(directory: Path) -> None:
    files = CertificateFiles(directory)
    first = files.current
    assert not files.is_expired()
    assert not files.refresh()
    before = (directory / "tls.crt").read_text()
    (directory / "tls.crt").write_text("damaged")
    assert files.refresh() and files.problem is not None and "tls.crt" in files.problem
    assert not files.refresh()
    assert files.current is first
    # As it was before: the problem is gone, and nothing new is served.
    (directory / "tls.crt").write_text(before)
    assert files.refresh() and files.problem is None and files.current is first
    store(directory, TestAuthority().issue("a.example.com"))
    assert files.refresh() and files.current is not first
