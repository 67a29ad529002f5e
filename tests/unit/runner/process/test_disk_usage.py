"""The watch over the crew's disk: what counts, when to look, and that the crew is stopped in time."""

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
    return sum(size for _, size in disk_tree.written(str(root), since, os.getuid() if uid is None else uid))


def _fill(path: Path, size: int = MIB) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))


def test_blocks_count_once_however_often_they_are_linked(tmp_path: Path) -> None:
    _fill(tmp_path / "a")
    for number in range(7):
        os.link(tmp_path / "a", tmp_path / f"link{number}")
    assert MIB <= _total(tmp_path) < MIB + 20 * disk_tree.INODE


def test_a_file_that_is_renamed_while_we_look_counts_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    _fill(tmp_path / "a" / "file", 4 * MIB)
    large: set[tuple[int, int]] = set()
    total = 0
    for here, there in (("a", "b"), ("b", "a")):
        total += sum(size for _, size in disk_tree.written(str(tmp_path / here), 0.0, os.getuid(), large))
        (tmp_path / here / "file").rename(tmp_path / there / "file")
    assert 4 * MIB <= total < 5 * MIB


class _Moving(disk_usage.Storage):
    """Finds at its first, long look what was moved meanwhile twice."""

    looks = 0

    def _written(self) -> Iterator[tuple[str, int]]:
        self.looks += 1
        yield "/app", 6 * MIB
        if self.looks == 1:
            time.sleep(1.5 * disk_usage.LONG)
            yield "/tmp", 6 * MIB


def test_a_long_look_at_too_much_is_followed_by_another(tmp_path: Path) -> None:
    watched = _Moving(10 * MIB, [str(tmp_path)], 0.0)
    watched.start()
    while watched.looks < 3 and watched.is_alive():
        time.sleep(0.01)
    watched.end()
    watched.join()
    assert watched.exceeded is None


def test_holes_are_not_counted_and_empty_files_are(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    assert _total(tmp_path) < MIB
    for number in range(100):
        (tmp_path / f"empty{number}").touch()
    assert _total(tmp_path) >= 100 * disk_tree.INODE


def test_what_the_image_brought_is_not_the_crews(tmp_path: Path) -> None:
    _fill(tmp_path / "of-the-image")
    assert _total(tmp_path, since=time.time() + 10) == 0
    os.utime(tmp_path / "of-the-image", (0, 0))
    assert _total(tmp_path, since=time.time() - 10) >= MIB  # an old date does not hide it


def test_only_what_the_crew_can_write_to_is_looked_into(tmp_path: Path) -> None:
    for name, mode in (("closed", 0o755), ("open", 0o777)):
        _fill(tmp_path / name / "file")
        (tmp_path / name).chmod(mode)
    parts = {part for part, _ in disk_tree.written(str(tmp_path), 0.0, os.getuid() + 1)}
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
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at)
    os.write(file, os.urandom(MIB))
    os.close(file)
    os.close(at)
    held = len(list(Path("/proc/self/fd").iterdir()))
    assert _total(tmp_path) >= MIB
    assert len(list(Path("/proc/self/fd").iterdir())) == held


@given(st.integers(0, 1 << 42), st.integers(1, 1 << 40), st.floats(0.1, 2))
def test_the_next_look_comes_before_the_fastest_crew(used: int, bound: int, longest: float) -> None:
    seconds = disk_usage.next_look(used, bound, longest)
    assert 0.05 <= seconds <= longest or seconds == longest
    assert seconds <= 0.05 or used + seconds * (2 << 30) <= bound + 1


def test_a_directory_below_another_is_not_measured_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    roots = [str(tmp_path / name) for name in ("a/b", "a", "link")]
    assert disk_usage.distinct([*roots, "", "/"]) == [str(tmp_path / "a")]


@pytest.mark.parametrize(("count", "text"), [(5, "5 bytes"), (3 << 30, "3 GiB"), (1536 * 1024, "1.5 MiB")])
def test_sizes_as_people_read_them(count: int, text: str) -> None:
    assert disk_usage.size(count) == text


FILL = """
    import os, time
    def kickoff():
        open("artifacts/kept.txt", "w").write("kept")
        print("begun")
        os.makedirs({place!r}, exist_ok=True)
        {opened}
        for _ in range(40):
            file.write(os.urandom(1 << 20))
            file.flush()
        time.sleep(60)
"""


@pytest.mark.parametrize("way", ["file", "deleted"])
async def test_a_crew_that_fills_the_disk_is_stopped_and_keeps_what_it_made(
    pod: Any, facade: Any, tmp_path: Path, way: str
) -> None:
    place = str(tmp_path / "scratch" / "cache")
    opened = f"file = open({place!r} + '/big', 'wb')"
    if way == "deleted":
        opened += f"; os.unlink({place!r} + '/big')"
    pod.crew(FILL.format(place=place, opened=opened))
    pod.environ = {"HOME": str(tmp_path / "home")}
    ended = await pod.run(STORAGE_LIMIT=str(20 * MIB), SCRATCH=str(tmp_path / "scratch"))
    assert (facade.result["outcome"], facade.result["reason"]) == ("failed", "StorageExceeded")
    for word in ("limit of 20 MiB", "ephemeral-storage", place if way == "file" else "deleted files"):
        assert word in facade.result["message"]
    assert facade.logs("info") == ["begun"]
    assert [one.body for one in facade.artifacts["kept.txt"]] == [b"kept"]
    assert (ended.code, ended.termination["reason"]) == (0, "StorageExceeded")


async def test_a_crew_within_its_limit_is_left_alone(pod: Any, facade: Any, tmp_path: Path) -> None:
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
    assert facade.result["outcome"] == "succeeded", facade.result


async def test_a_limit_that_is_no_number_is_named(pod: Any) -> None:
    pod.crew("def kickoff(): pass")
    ended = await pod.run(STORAGE_LIMIT="3Gi")
    assert ended.code == 70
    assert "CREWYARD_STORAGE_LIMIT is '3Gi'" in ended.termination["message"]
