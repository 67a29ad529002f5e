"""Disk usage: what counts, when to check, and that the crew is stopped in time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1.process import disk_tree, disk_usage

MIB = 1 << 20


def _total(root: Path, since: float = 0.0, uid: int | None = None) -> int:
    return sum(
        size for _, size in disk_tree.changed_entries(str(root), since, os.getuid() if uid is None else uid)
    )


def _fill(path: Path, size: int = MIB) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))


def test_blocks_of_hard_links_count_once(tmp_path: Path) -> None:
    _fill(tmp_path / "a")
    for number in range(7):
        os.link(tmp_path / "a", tmp_path / f"link{number}")
    assert MIB <= _total(tmp_path) < MIB + 20 * disk_tree.INODE_BYTES


def test_a_file_renamed_during_the_walk_counts_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    _fill(tmp_path / "a" / "file", 4 * MIB)
    large: set[tuple[int, int]] = set()
    total = 0
    for source, target in (("a", "b"), ("b", "a")):
        total += sum(
            size for _, size in disk_tree.changed_entries(str(tmp_path / source), 0.0, os.getuid(), large)
        )
        (tmp_path / source / "file").rename(tmp_path / target / "file")
    assert 4 * MIB <= total < 5 * MIB


class _Moving(disk_usage.DiskWatcher):
    """Counts files twice on its first, long walk."""

    walks = 0

    def _written(self) -> Iterator[tuple[str, int]]:
        self.walks += 1
        yield "/app", 6 * MIB
        if self.walks == 1:
            time.sleep(1.5 * disk_usage.LONG_WALK_SECONDS)
            yield "/tmp", 6 * MIB


def test_a_long_walk_above_the_limit_is_repeated(tmp_path: Path) -> None:
    watcher = _Moving(10 * MIB, [str(tmp_path)], 0.0)
    watcher.start()
    while watcher.walks < 3 and watcher.is_alive():
        time.sleep(0.01)
    watcher.stop()
    watcher.join()
    assert watcher.exceeded is None


def test_holes_are_not_counted_and_empty_files_are(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    assert _total(tmp_path) < MIB
    for number in range(100):
        (tmp_path / f"empty{number}").touch()
    assert _total(tmp_path) >= 100 * disk_tree.INODE_BYTES


def test_files_of_the_image_do_not_count(tmp_path: Path) -> None:
    _fill(tmp_path / "of-the-image")
    assert _total(tmp_path, since=time.time() + 10) == 0
    os.utime(tmp_path / "of-the-image", (0, 0))
    assert _total(tmp_path, since=time.time() - 10) >= MIB  # an old mtime does not hide it


def test_only_writable_directories_are_walked(tmp_path: Path) -> None:
    for name, mode in (("closed", 0o755), ("open", 0o777)):
        _fill(tmp_path / name / "file")
        (tmp_path / name).chmod(mode)
    parts = {part for part, _ in disk_tree.changed_entries(str(tmp_path), 0.0, os.getuid() + 1)}
    assert parts == {str(tmp_path / "closed"), str(tmp_path / "open")}
    assert MIB <= _total(tmp_path, uid=os.getuid() + 1) < 2 * MIB


def test_links_are_not_followed(tmp_path: Path) -> None:
    _fill(tmp_path / "away" / "file")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "away")
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root")
    assert _total(tmp_path / "root") < MIB


def test_a_tree_deeper_than_any_path_is_measured(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 200, dir_fd=at)
        child = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = child
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at)
    os.write(file, os.urandom(MIB))
    os.close(file)
    os.close(at)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    assert _total(tmp_path) >= MIB
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


@given(st.integers(0, 1 << 42), st.integers(1, 1 << 40), st.floats(0.1, 2))
def test_the_next_check_comes_before_the_fastest_crew(used: int, threshold: int, longest: float) -> None:
    seconds = disk_usage.next_check_seconds(used, threshold, longest)
    assert 0.05 <= seconds <= longest or seconds == longest
    assert seconds <= 0.05 or used + seconds * (2 << 30) <= threshold + 1


def test_nested_roots_are_not_counted_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    roots = [str(tmp_path / name) for name in ("a/b", "a", "link")]
    assert disk_usage.distinct_roots([*roots, "", "/"]) == [str(tmp_path / "a")]


@pytest.mark.parametrize(("count", "text"), [(5, "5 bytes"), (3 << 30, "3 GiB"), (1536 * 1024, "1.5 MiB")])
def test_sizes_are_formatted(count: int, text: str) -> None:
    assert disk_usage.format_bytes(count) == text


FILL = """
    import os, time
    def kickoff():
        open("artifacts/kept.txt", "w").write("kept")
        print("started")
        os.makedirs({place!r}, exist_ok=True)
        {opened}
        for _ in range(40):
            file.write(os.urandom(1 << 20))
            file.flush()
        time.sleep(60)
"""


@pytest.mark.parametrize("way", ["file", "deleted"])
async def test_a_crew_that_fills_the_disk_is_stopped_and_keeps_its_artifacts(
    pod: Any, api: Any, tmp_path: Path, way: str
) -> None:
    place = str(tmp_path / "scratch" / "cache")
    opened = f"file = open({place!r} + '/big', 'wb')"
    if way == "deleted":
        opened += f"; os.unlink({place!r} + '/big')"
    pod.crew(FILL.format(place=place, opened=opened))
    pod.environ = {"HOME": str(tmp_path / "home")}
    ended = await pod.run(STORAGE_LIMIT=str(20 * MIB), SCRATCH=str(tmp_path / "scratch"))
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "StorageExceeded")
    for word in ("limit of 20 MiB", "ephemeral-storage", place if way == "file" else "deleted files"):
        assert word in api.result["message"]
    assert api.logs("info") == ["started"]
    assert [version.body for version in api.artifacts["kept.txt"]] == [b"kept"]
    assert (ended.code, ended.termination["reason"]) == (0, "StorageExceeded")


async def test_a_crew_within_its_limit_is_left_alone(pod: Any, api: Any, tmp_path: Path) -> None:
    pod.crew(
        """
        import os, time
        def kickoff():
            open("artifacts/some", "wb").write(os.urandom(7 << 20))
            time.sleep(1.2)
        """
    )
    pod.environ = {"HOME": str(tmp_path / "home")}
    await pod.run(STORAGE_LIMIT=str(20 * MIB), SCRATCH=str(tmp_path / "none"))
    assert api.result["outcome"] == "succeeded", api.result


async def test_an_error_names_a_limit_that_is_not_a_number(pod: Any) -> None:
    pod.crew("def kickoff(): pass")
    ended = await pod.run(STORAGE_LIMIT="3Gi")
    assert ended.code == 70
    assert "CREWYARD_STORAGE_LIMIT is '3Gi'" in ended.termination["message"]
