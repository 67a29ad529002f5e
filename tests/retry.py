"""Second run of the few tests that failed in a complete run, alone on the machine.

`make test` runs it after pytest: `python -m tests.retry`. It exits 0 only if each of them passes then, and
prints them as flaky. More than three failures are never run again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests import complete

ROOT = Path(__file__).parents[1]
MAX_RETRIED_TESTS = 3


def failed_tests(directory: Path) -> list[str]:
    """Return the node ids that failed in the last run of pytest in a directory, sorted."""
    cache = directory / ".pytest_cache/v/cache/lastfailed"
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def retry(directory: Path, options: list[str]) -> int:
    """Run the failed tests of a directory once more; return 0 if all of them pass."""
    failed = failed_tests(directory)
    if not 0 < len(failed) <= MAX_RETRIED_TESTS:
        return 1
    print(f"retry: {len(failed)} failed; they run once more, alone", flush=True)
    # The options of pyproject.toml deselect marks; a test that failed was selected.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "-m", "", *failed]
    if subprocess.run(
        command, cwd=directory, env={**os.environ, complete.VARIABLE: "1"}, check=False
    ).returncode:
        return 1
    for name in failed:
        print(f"flaky: {name}: failed, then passed alone: find the cause")
    return 0


if __name__ == "__main__":
    sys.exit(retry(ROOT, sys.argv[1:]))
