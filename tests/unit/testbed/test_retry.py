"""The second run of failed tests: only a few, and only a pass counts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.retry import MAX_RETRIED_TESTS, failed_tests, retry

FLAKY = """
from pathlib import Path

def test_flaky():
    mark = Path(__file__).with_name("mark")
    known = mark.exists()
    mark.touch()
    assert known

def test_good():
    pass
"""
BROKEN = "def test_broken():\n    assert False\n"
MANY = "".join(f"def test_{n}():\n    assert False\n" for n in range(MAX_RETRIED_TESTS + 1))


def run(directory: Path, source: str) -> int:
    """Write a test file and run it; return the exit code of pytest."""
    (directory / "test_example.py").write_text(source)
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "1", "--cache-clear", "."]
    return subprocess.run(command, cwd=directory, capture_output=True, timeout=120, check=False).returncode


def test_a_test_that_passes_alone_is_named_as_flaky(tmp_path, capfd):
    assert run(tmp_path, FLAKY) == 1
    assert failed_tests(tmp_path) == ["test_example.py::test_flaky"]
    assert retry(tmp_path, []) == 0
    assert "flaky: test_example.py::test_flaky" in capfd.readouterr().out


@pytest.mark.parametrize("source", [BROKEN, MANY, "def broken(:\n"])
def test_other_failures_stay(tmp_path, source, capfd):
    assert run(tmp_path, source) != 0
    assert retry(tmp_path, []) == 1
    assert "flaky:" not in capfd.readouterr().out


def test_nothing_runs_without_a_failure(tmp_path):
    assert retry(tmp_path, []) == 1
