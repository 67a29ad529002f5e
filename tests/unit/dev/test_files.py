"""Files of keys and records: complete, or as before."""

from pathlib import Path

import pytest

from dev import files
from dev.cluster import credentials


def test_a_failed_write_keeps_the_earlier_content(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    files.write(path, "{}")
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "begin \ud800")
    assert path.read_text() == "{}"
    files.write(path, "[]")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("record.json", "[]")]


def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "key"
    files.write(path, "secret", files.PRIVATE_MODE)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_interrupted_command_leaves_no_empty_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dev.cluster.credentials.secrets.token_hex", interrupt)
        with pytest.raises(KeyboardInterrupt):
            credentials.generated(tmp_path / "secret")
    assert len(credentials.generated(tmp_path / "secret")) == 32
