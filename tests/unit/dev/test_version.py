"""The version is stated alike everywhere, and `make version` sets every place."""

import shutil
from pathlib import Path

import pytest

from dev import changelog, version
from dev.settings import REPOSITORY


def test_every_place_states_the_version_of_pyproject() -> None:
    current = version.current()
    assert [(file, stated) for file, stated in version.stated() if stated != current] == []


def test_setting_a_version_changes_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in {file for file, _ in version.COPIES}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / file, tmp_path / file)
    monkeypatch.setattr(version, "REPOSITORY", tmp_path)
    assert version.main(["12.34.56-rc.1"]) == 0
    assert {stated for _, stated in version.stated(tmp_path)} == {"12.34.56-rc.1"}
    assert version.current(tmp_path) == "12.34.56-rc.1"


@pytest.mark.parametrize("wrong", ["1.2", "v1.2.3", "1.2.3 ", "latest", ""])
def test_a_malformed_version_is_rejected_and_writes_nothing(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert version.main([wrong]) == 2
    assert "MAJOR.MINOR.PATCH" in capsys.readouterr().err


def test_release_notes_are_the_section_of_the_version() -> None:
    text = (
        "# Changes\n\n## [Unreleased]\n\n- c\n\n## [0.2.0] - 2026-12-01\n\n"
        "### Added\n\n- b\n\n## [0.1.0]\n\n- a\n"
    )
    assert changelog.section(text, "0.2.0") == "### Added\n\n- b"
    assert changelog.section(text, "0.1.0") == "- a"


@pytest.mark.parametrize("version_", ["0.3.0", "0.1"])
def test_release_notes_of_an_absent_version_are_an_error(version_: str) -> None:
    with pytest.raises(ValueError, match="no section"):
        changelog.section("## [0.1.0]\n\n- a\n", version_)


def test_empty_release_notes_are_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        changelog.section("## [0.2.0]\n\n## [0.1.0]\n\n- a\n", "0.2.0")
