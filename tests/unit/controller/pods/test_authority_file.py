"""The file with the authorities that pods accept: what is read, what is rejected, what a change does."""

from pathlib import Path

import pytest

from controller.config import ConfigError, parse
from controller.pods.authority_file import AuthorityFile
from egress.ca_bundle import MAX_CHARACTERS
from tests.testbed.certificates import TestAuthority, certificate
from tests.unit.controller.test_config import GOOD

FIRST, SECOND = TestAuthority().text, TestAuthority().text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_text(FIRST)
    return tmp_path / "ca.crt"


def test_each_change_is_reported_once_and_the_last_valid_file_counts(path: Path) -> None:
    file = AuthorityFile(path)
    assert file.current == FIRST and not file.refresh()
    path.write_text(FIRST + SECOND)
    assert file.refresh() and file.current == FIRST + SECOND
    assert not file.refresh()
    for damaged in ("damaged", FIRST + certificate("a").key, "x" * (MAX_CHARACTERS + 1)):
        path.write_text(damaged)
        assert file.refresh() and file.problem is not None, damaged
        assert not file.refresh()
        assert file.current == FIRST + SECOND
    path.unlink()
    assert file.refresh() and file.problem is not None and "is not readable" in file.problem
    # As it was before: the problem is gone.
    path.write_text(FIRST + SECOND)
    assert file.refresh() and file.problem is None
    path.write_text(SECOND)
    assert file.refresh() and file.current == SECOND


def test_link_that_points_elsewhere_is_a_change(tmp_path: Path) -> None:
    """The kubelet replaces a link to a directory, with the same times in each."""
    for name, text in (("a", FIRST), ("b", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.crt").write_text(text)
    link = tmp_path / "data"
    link.symlink_to("a")
    file = AuthorityFile(link / "ca.crt")
    link.unlink()
    link.symlink_to("b")
    assert file.refresh() and file.current == SECOND


def test_setting_names_a_file_that_can_be_read(path: Path) -> None:
    tls = {**GOOD, "CREWYARD_INTERNAL_TLS_URL": "https://api:8443"}
    config = parse({**tls, "CREWYARD_INTERNAL_CA_FILE": str(path)})
    assert config.api_address.authorities == FIRST
    # Installations that set the variable by a patch keep its value.
    both = {**tls, "CREWYARD_INTERNAL_CA_FILE": str(path), "CREWYARD_INTERNAL_CA": SECOND}
    assert parse(both).api_address.authorities == SECOND
    with pytest.raises(ConfigError, match="CREWYARD_INTERNAL_CA_FILE: /nowhere is not readable"):
        parse({**tls, "CREWYARD_INTERNAL_CA_FILE": "/nowhere"})
