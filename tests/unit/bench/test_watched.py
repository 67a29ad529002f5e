"""What measurements watch on this machine: a log's rotations, memory of a cgroup; and a log's lines."""

from bench.runs.million_lines import LogLines
from bench.runs.rotations import LogRotations
from bench.sources.peak_memory import PeakMemory, read


def test_a_file_that_becomes_another_one_was_rotated():
    found = LogRotations()
    assert found.describe() == "rotations not seen from this machine"
    for inode in (7, 7, 8, 8, 7):
        found.observe(inode)
    assert found.describe() == "2 rotations"


def test_memory_is_read_of_both_kinds_of_cgroups(tmp_path):
    (tmp_path / "memory.peak").write_text("4096\n")
    (tmp_path / "memory.stat").write_text("anon 1024\nfile 3072\n")
    assert read(tmp_path) == (4096, 1024)
    (tmp_path / "memory.peak").unlink()
    (tmp_path / "memory.max_usage_in_bytes").write_text("8192\n")
    (tmp_path / "memory.stat").write_text("cache 1\nrss 5\ntotal_rss 2048\n")
    assert read(tmp_path) == (8192, 2048)
    assert read(tmp_path / "gone") == (0, 0)


def test_a_peak_is_told_beside_its_limit():
    assert "no memory seen" in PeakMemory().describe()
    told = PeakMemory("4Gi", 900 * 2**20, 300 * 2**20).describe()
    assert told == "at most 900 MiB with pages of files, 300 MiB of processes, limit 4Gi"


def test_what_the_runner_did_not_repeat_is_told_apart_from_what_was_lost():
    whole = b"%07d " + b"x" * 160 + b"\n"
    found = LogLines()
    note = b"[runner] 12 lines are not repeated here; the run's events have them\n"
    for line in (
        whole % 0,
        note,
        b"[runner] ends\n",
        b"crewyard: up\n",
        (whole % 13)[:90] + b"\n",
        b"xxxx\n",
        whole % 14,
    ):
        found.add(line)
    assert (found.numbers, found.omitted, found.damaged) == ([0, 14], 12, 2)
