"""State directory: exclusive content, one command at a time, one dev cluster per machine."""

import io
from pathlib import Path

import pytest

from dev import state
from dev.errors import DevClusterError
from dev.progress import StepProgress
from dev.settings import Settings
from tests.lanes import service_lock


def test_a_fresh_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "yard")
    state.claim(settings)
    assert settings.state.stat().st_mode & 0o777 == 0o700
    state.claim(settings)


def test_a_directory_with_other_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(DevClusterError, match=r"thesis\.txt"):
        state.claim(Settings(tmp_path))


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(DevClusterError, match=rf"cannot be written.*{tmp_path}.*Set CREWYARD_STATE"):
        state.claim(Settings(tmp_path))


def test_remove_keeps_unknown_entries(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    state.claim(settings)
    settings.kubeconfig.write_text("x")
    (tmp_path / "thesis.txt").write_text("x")
    state.remove(settings)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_remove_deletes_a_directory_without_unknown_entries(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "yard")
    state.claim(settings)
    state.remove(settings)
    assert not settings.state.exists()


def test_remove_deletes_the_locks_of_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path / "state")
    state.claim(settings)
    monkeypatch.setenv("CREWYARD_STATE", str(settings.state))
    with service_lock(exclusive=False):
        pass
    state.remove(settings)
    assert not settings.state.exists()


def test_a_second_command_waits_for_the_lock(tmp_path: Path) -> None:
    settings, progress = Settings(tmp_path), StepProgress(io.StringIO())
    with (
        state.locked(settings, progress),
        pytest.raises(DevClusterError, match="Another"),
        state.locked(settings, progress, seconds=0.3),
    ):
        pass
    with state.locked(settings, progress):
        pass


def test_a_reboot_clears_the_run_directory(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "yard")
    boot = tmp_path / "boot"
    boot.write_text("one\n")
    assert not state.remove_stale_run_state(settings, boot)
    (settings.run / "etcd.pid").write_text("x")
    assert not state.remove_stale_run_state(settings, boot)
    assert (settings.run / "etcd.pid").exists()
    boot.write_text("two\n")
    assert state.remove_stale_run_state(settings, boot)
    assert not (settings.run / "etcd.pid").exists()


def test_a_machine_runs_one_dev_cluster(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    first, second = Settings(tmp_path / "one"), Settings(tmp_path / "two")
    first.run.mkdir(parents=True)
    state.record_machine(first, mark)
    state.record_machine(first, mark)
    with pytest.raises(DevClusterError, match=str(first.state)):
        state.record_machine(second, mark)
    state.remove_machine_record(mark)
    state.record_machine(second, mark)


def test_a_removed_dev_cluster_blocks_no_other(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.write_text(str(tmp_path / "purged"))
    state.record_machine(Settings(tmp_path / "two"), mark)
