"""Local observations of measurements: log rotations, cgroup memory, log lines."""

from bench.runs.million_lines import LogLines
from bench.runs.rotations import LogRotations
from bench.sources.peak_memory import PeakMemory, read


def test_a_changed_inode_is_a_rotation():
    log_rotations = LogRotations()
    assert log_rotations.describe() == "rotations not seen from this machine"
    for inode in (7, 7, 8, 8, 7):
        log_rotations.observe(inode)
    assert log_rotations.describe() == "2 rotations"


def test_memory_is_read_from_both_cgroup_versions(tmp_path):
    (tmp_path / "memory.peak").write_text("4096\n")
    (tmp_path / "memory.stat").write_text("anon 1024\nfile 3072\n")
    assert read(tmp_path) == (4096, 1024)
    (tmp_path / "memory.peak").unlink()
    (tmp_path / "memory.max_usage_in_bytes").write_text("8192\n")
    (tmp_path / "memory.stat").write_text("cache 1\nrss 5\ntotal_rss 2048\n")
    assert read(tmp_path) == (8192, 2048)
    assert read(tmp_path / "gone") == (0, 0)


def test_the_peak_is_described_with_its_limit():
    assert "no memory seen" in PeakMemory().describe()
    text = PeakMemory("4Gi", 900 * 2**20, 300 * 2**20).describe()
    assert text == "at most 900 MiB with pages of files, 300 MiB of processes, limit 4Gi"


def test_omitted_lines_are_distinguished_from_lost_ones():
    line_format = b"%07d " + b"x" * 160 + b"\n"
    log_lines = LogLines()
    note = b"[runner] 12 lines are not repeated here; the run's events have them\n"
    for line in (
        line_format % 0,
        note,
        b"[runner] ends\n",
        b"crewyard: up\n",
        (line_format % 13)[:90] + b"\n",
        b"xxxx\n",
        line_format % 14,
    ):
        log_lines.add(line)
    assert (log_lines.numbers, log_lines.omitted, log_lines.damaged) == ([0, 14], 12, 2)
