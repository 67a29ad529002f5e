"""The layer of an installation: what its script has added, changed and removed."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from build.image import changed_files
from plan.packages.pip_log import dependency_failure


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small file system."""
    made = tmp_path / "root"
    for name in ("kept/a", "changed/a", "gone/deep/a", "gone/b", "replaced/a", "alone"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    return made


def layer_of(root: Path, tmp_path: Path, script: str, code: int = 0) -> dict[str, tarfile.TarInfo]:
    """Return the members of the layer that the script makes."""
    path, layer = tmp_path / "install.sh", tmp_path / "layer.tar"
    path.write_text(script)
    assert changed_files.main([str(path), str(layer)], str(root)) == code
    if code:
        return {}
    with tarfile.open(layer) as tar:
        members = {member.name: member for member in tar}
        assert len(members) == len(tar.getnames())
    return members


def test_an_unchanged_root_gives_an_empty_layer(root: Path, tmp_path: Path) -> None:
    assert layer_of(root, tmp_path, "cat kept/a >/dev/null") == {}


def test_layer_has_what_was_added_changed_and_removed(root: Path, tmp_path: Path) -> None:
    members = layer_of(
        root,
        tmp_path,
        """
        echo more >> changed/a
        mkdir -p new/deep && echo x > new/deep/a && chmod 0750 new/deep/a && ln new/deep/a new/hard
        ln -s ../kept new/link && mkfifo new/pipe
        rm -r gone alone && rm -r replaced && ln -s kept replaced
        """,
    )
    kinds = {name: member.type for name, member in members.items() if name != "."}
    assert kinds == {
        "changed/a": tarfile.REGTYPE,
        "new": tarfile.DIRTYPE,
        "new/deep": tarfile.DIRTYPE,
        "new/deep/a": tarfile.REGTYPE,
        "new/hard": tarfile.LNKTYPE,
        "new/link": tarfile.SYMTYPE,
        "replaced": tarfile.SYMTYPE,
        ".wh.gone": tarfile.REGTYPE,
        ".wh.alone": tarfile.REGTYPE,
    }
    added = members["new/deep/a"]
    status = (root / "new/deep/a").stat()
    assert (added.mode, added.uid, added.gid) == (0o750, os.getuid(), os.getgid())
    # Compiled modules name the second in which their source was changed.
    assert (added.mtime, added.size) == (int(status.st_mtime), 2)
    assert members["new/hard"].linkname == "new/deep/a" and members["new/link"].linkname == "../kept"


def test_a_changed_owner_or_mode_is_a_change(root: Path, tmp_path: Path) -> None:
    members = layer_of(root, tmp_path, "chmod 0600 kept/a; chmod 0700 changed")
    assert {name: member.mode for name, member in members.items()} == {"kept/a": 0o600, "changed": 0o700}


def test_names_that_are_not_text_stay_as_they_are(root: Path, tmp_path: Path) -> None:
    members = layer_of(root, tmp_path, "echo x > \"kept/$(printf '\\377')\"; echo y > 'kept/a b'")
    assert {os.fsencode(name) for name in members} == {b"kept", b"kept/\xff", b"kept/a b"}


def test_mount_points_are_not_in_the_layer(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "/proc" in changed_files.mount_points()
    monkeypatch.setattr(changed_files, "mount_points", lambda: {str(root / "kept"), str(root / "alone")})
    members = layer_of(root, tmp_path, "echo x > kept/b; echo x > alone; echo x > changed/a")
    assert set(members) == {"changed/a"}


@pytest.mark.parametrize(
    ("script", "words"),
    [("echo the reason; exit 3", "exit status 3"), ("kill -9 $$", "exit status 137")],
)
def test_a_failed_script_ends_with_one(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], script: str, words: str
) -> None:
    layer_of(root, tmp_path, script, 1)
    output = capfd.readouterr().out
    assert words in output and ("the reason" in output) == ("reason" in script)
    assert not (tmp_path / "layer.tar").exists()


@pytest.mark.parametrize(
    ("printed", "reason", "words"),
    [
        ("error: something odd", "BuildFailed", "failed: error: something odd"),
        (
            "error: The build backend returned an error\nRuntimeError: no model file",
            "BuildFailed",
            "own project failed: RuntimeError: no model file",
        ),
    ],
)
def test_the_cause_is_what_the_script_printed(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], printed: str, reason: str, words: str
) -> None:
    (tmp_path / "printed").write_text(printed)
    layer_of(root, tmp_path, f"cat {tmp_path}/printed; echo; exit 1", 1)
    failure = dependency_failure(capfd.readouterr().out)
    assert failure.reason == reason and failure.message.endswith(words)


def test_a_layer_that_cannot_be_written_is_a_failure(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "layer.tar").mkdir()
    layer_of(root, tmp_path, "echo x > alone", 1)
    assert "the layer of the installation cannot be written" in capfd.readouterr().out


def test_the_file_needs_nothing_but_python() -> None:
    program = f"import runpy; runpy.run_path({changed_files.__file__!r}, run_name='alone')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], timeout=60, check=False)
    assert done.returncode == 0
