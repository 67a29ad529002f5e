"""Tests of the directories of one process: those of killed processes are removed, those in use are kept."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube import owned_directory as owned

HOLDER = """
import sys
from pathlib import Path
from kube.owned_directory import owned_directory
with owned_directory(Path(sys.argv[1]), "work-") as path:
    (path / "file").write_text("text")
    print(path, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run another process that holds a directory."""
    command = [sys.executable, "-c", HOLDER, str(parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def directories(parent: Path) -> set[str]:
    return {path.name for path in parent.iterdir()}


def test_a_directory_lasts_as_long_as_its_process(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, path):
        assert path.parent == tmp_path and (path / "file").exists()
        with owned.owned_directory(tmp_path, "work-") as own:
            assert directories(tmp_path) == {path.name, own.name}
            process.kill()
            process.wait()
            with owned.owned_directory(tmp_path, "work-") as another:
                assert directories(tmp_path) == {own.name, another.name}
    assert directories(tmp_path) == set()


def test_an_ended_process_leaves_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, path):
        process.communicate()
        assert process.returncode == 0 and not path.exists()
    assert directories(tmp_path) == set()


def test_only_directories_of_the_prefix_are_removed(tmp_path: Path) -> None:
    for name in ("work-old", "other-old"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_text("text")
    (tmp_path / "work-file").write_text("text")
    (tmp_path / "work-link").symlink_to(tmp_path / "other-old")
    assert owned.remove_abandoned(tmp_path, "work-") == 1
    assert directories(tmp_path) == {"other-old", "work-file", "work-link"}
    assert (tmp_path / "other-old" / "deep" / "file").exists()


def test_a_start_removes_a_bounded_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned, "MAX_REMOVED_DIRECTORIES", 3)
    for number in range(5):
        (tmp_path / f"work-{number}").mkdir()
    assert [owned.remove_abandoned(tmp_path, "work-") for _ in range(3)] == [3, 2, 0]


def test_temporary_files_of_a_process_and_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / f"{owned.TEMPORARY_PREFIX}left").mkdir()
    with owned.own_temporary_directory() as path:
        assert directories(tmp_path) == {path.name}
        assert Path(tempfile.mkdtemp(prefix="git-")).parent == path
        made = subprocess.run(
            [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert Path(made.strip()).parent == path
    assert directories(tmp_path) == set()
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path)
