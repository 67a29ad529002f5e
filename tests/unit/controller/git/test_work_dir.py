"""Directories of the git client: a killed process leaves some, and the next request removes them."""

import tempfile
from pathlib import Path

import pytest

from controller.git.client import Git
from controller.git.process import work_dir
from kube.owned_directory import GIT_PREFIX, remove_abandoned
from tests.unit.controller.source import polling


@pytest.fixture
def abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a killed process, in the directory for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"{GIT_PREFIX}left"
    (left / "repository").mkdir(parents=True)
    return left


async def test_a_git_client_owns_its_directory(tmp_path: Path, abandoned: Path) -> None:
    git = Git(polling.PollingConfig())  # type: ignore[arg-type]
    (own,) = tmp_path.iterdir()
    assert own != abandoned and (own / "repository").is_dir()
    assert remove_abandoned(tmp_path, GIT_PREFIX) == 0 and own.exists()
    await git.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_request_owns_its_directory(tmp_path: Path, abandoned: Path) -> None:
    async with work_dir() as own:
        assert not abandoned.exists()
        assert remove_abandoned(tmp_path, GIT_PREFIX) == 0 and Path(own).is_dir()
    assert list(tmp_path.iterdir()) == []
