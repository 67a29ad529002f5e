"""Rules of a complete run: a skip without a listed reason fails, and so does a file that is left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import complete
from tests.lanes import HERE

CONFTEST = """
from pathlib import Path
from tests import complete

def pytest_configure(config):
    config.pluginmanager.register(complete.CompleteRun(Path(__file__).parent))
"""
LISTED = next(iter(complete.PLATFORM_SKIPS))


FILES = {
    "test_call.py": "import pytest\n\ndef test_a():\n    pytest.skip('no program a')\n",
    "test_mark.py": "import pytest\n\n@pytest.mark.skipif(True, reason='no program b')\ndef test_b(): ...\n",
    "test_module.py": "import pytest\n\npytest.skip('no program c', allow_module_level=True)\n",
    "test_listed.py": f"import pytest\n\ndef test_d():\n    pytest.skip({LISTED!r})\n",
}


def run_pytest(directory: Path, files: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the test files of a new repository under the rules."""
    for name, text in {"conftest.py": CONFTEST, "pytest.ini": "[pytest]\n", **files}.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_skip_fails_a_complete_run_unless_its_reason_is_listed(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FILES, "--continue-on-collection-errors")
    for letter in "abc":
        assert f"was skipped: Skipped: no program {letter}" in done.stdout, done.stdout
    assert "2 failed, 1 skipped, 2 errors" in done.stdout, done.stdout
    assert done.returncode == 1


def test_a_tracked_file_that_is_not_collected_fails_a_complete_run(tmp_path: Path) -> None:
    """Slow: pytest and a worker, in processes of their own."""
    # pytest's own default leaves out folders of this name.
    files = {"test_one.py": "def test_one(): ...\n", "build/test_two.py": "def test_two(): ...\n"}
    done = run_pytest(tmp_path, files, "-n", "1")
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout
    assert re.search("collected no test of .*/build/test_two.py", done.stdout), done.stdout


def test_deselected_tests_count_as_collected(tmp_path: Path) -> None:
    files = {"test_one.py": "def test_one(): ...\n", "test_two.py": "def test_two(): ...\n"}
    done = run_pytest(tmp_path, files, "-k", "two")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_each_listed_reason_is_one_of_a_test() -> None:
    sources = "".join(
        path.read_text()
        for path in HERE.rglob("*.py")
        if path != Path(complete.__file__) and path != Path(__file__)
    )
    assert [reason for reason in complete.PLATFORM_SKIPS if reason not in sources] == []
