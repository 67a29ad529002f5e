"""Only packages of missing programs are installed."""

import io
import os
import shutil
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dev import packages
from dev.errors import DevClusterError
from dev.packages import CLUSTER_PACKAGES, TEST_PACKAGES, is_present, missing, search_path
from dev.process import command
from dev.process.parallel import parallel
from dev.progress import Step, StepProgress
from dev.settings import Settings

NEEDS = {"/nowhere/at/all": "no-such-package"}


def test_nothing_is_missing_where_all_is_present() -> None:
    assert missing(CLUSTER_PACKAGES, lambda need: True) == []


def test_a_program_from_elsewhere_needs_no_package() -> None:
    assert missing(CLUSTER_PACKAGES, lambda need: need != "dnsmasq") == ["dnsmasq-base"]
    assert "containerd" not in missing(CLUSTER_PACKAGES, lambda need: need == "containerd")


def test_all_packages_are_named_once() -> None:
    for needs in (CLUSTER_PACKAGES, TEST_PACKAGES):
        assert missing(needs, lambda need: False) == sorted(set(needs.values()))


def test_packages_of_tests_are_not_installed_by_up() -> None:
    assert not set(CLUSTER_PACKAGES.values()) & set(TEST_PACKAGES.values())


def test_files_and_programs_are_both_found() -> None:
    assert is_present("/etc/os-release")
    assert is_present("sh")
    assert not is_present("/nowhere/at/all")
    assert not is_present("no-such-program-anywhere")


def test_a_file_is_found_in_the_directory_of_any_version(tmp_path: Path) -> None:
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / "postgres").touch()
    assert is_present(f"{tmp_path}/*/postgres")
    assert not is_present(f"{tmp_path}/*/psql")


def test_postgresql_is_of_no_particular_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"postgresql", "postgresql-client"} < set(TEST_PACKAGES.values())
    monkeypatch.setattr(packages, "_POSTGRESQL", tmp_path)
    assert not (packages.postgresql_programs() / "postgres").exists()
    for version in ("9.6", "17", "15"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "postgres").touch()
    (tmp_path / "18" / "bin").mkdir(parents=True)  # only a client
    assert packages.postgresql_programs() == tmp_path / "17" / "bin"
    assert packages.postgresql_programs("15") == tmp_path / "15" / "bin"


def test_the_path_includes_sbin_directories() -> None:
    path = search_path("/usr/local/bin:/usr/bin:/bin")
    assert path.split(":")[:3] == ["/usr/local/bin", "/usr/bin", "/bin"]
    assert {"/usr/sbin", "/sbin", "/usr/local/go/bin"} <= set(path.split(":"))
    assert search_path(path) == path


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path that stands for policy-rc.d, on a machine where root can install packages."""
    path = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "_POLICY_RC_D", path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    return path


def test_a_policy_that_a_killed_up_left_is_removed(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(command, "run", lambda *_, **__: seen.append(policy.read_text()))
    packages.install(Settings(tmp_path), StepProgress(), NEEDS)
    assert not policy.exists()
    policy.write_text(seen[0])
    packages.install(Settings(tmp_path), StepProgress(), NEEDS)
    assert len(set(seen)) == 1 and seen[0].endswith("exit 101\n")
    assert not policy.exists()
    policy.write_text(seen[0])
    packages.remove_policy()
    packages.remove_policy()
    assert not policy.exists()


def test_the_policy_of_someone_else_stays(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.write_text("#!/bin/sh\nexit 101\n")
    monkeypatch.setattr(command, "run", lambda *_, **__: None)
    packages.install(Settings(tmp_path), StepProgress(), NEEDS)
    packages.remove_policy()
    assert policy.read_text() == "#!/bin/sh\nexit 101\n"


WAITS = "waiting for another command that installs packages"


def test_installations_take_turns(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    active: list[int] = []
    seen: list[tuple[int, bool]] = []
    waits, output = threading.Event(), io.StringIO()

    class NotedProgress(StepProgress):
        def step(self, title: str) -> AbstractContextManager[Step]:
            if title == WAITS:
                waits.set()
            return super().step(title)

    def run(*_: object, **__: object) -> None:
        active.append(1)
        packages.remove_policy()  # `make down`
        assert waits.wait(60)
        seen.append((len(active), policy.exists()))
        active.pop()

    monkeypatch.setattr(command, "run", run)
    progress = NotedProgress(output)
    with parallel(progress) as start:
        for state in ("one", "two"):
            start(packages.install, Settings(tmp_path / state), progress, NEEDS)
    assert seen == [(1, True)] * 4
    assert WAITS in output.getvalue()
    assert not policy.exists()


@pytest.mark.parametrize(("user", "programs"), [(1000, {"apt-get"}), (0, set())])
def test_missing_packages_are_named_to_who_cannot_install_them(
    user: int, programs: set[str], policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name if name in programs else None)
    with pytest.raises(DevClusterError, match=r"no-such-package.*as root"):
        packages.install(Settings(tmp_path), StepProgress(), NEEDS)
    assert not policy.exists()
