"""Rules of a complete run: each tracked test file is collected, each skip has a listed reason.

`make test` and `make test-all` set the variable; tests/conftest.py registers the plugin.
"""

import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

VARIABLE = "CREWYARD_COMPLETE_RUN"
PLATFORM_SKIPS = {
    "this machine is behind a proxy itself": "a machine whose requests go through a web proxy",
    "the cluster is not the embedded node": "kind: its control plane runs in a container",
    "the node is not this machine, or this is not root": "kind",
    "the pods' processes are not on this machine": "kind",
    "the registry's files are not on this machine": "kind",
    "the image was not built on this machine": "kind",
    "etcd, logs and images are searched on the dev cluster's machine": "kind",
    "only root can mount a file system": "an account that is not root",
    "only root can become another user": "an account that is not root",
    "only root makes network namespaces": "an account that is not root",
    "needs a second user": "an account that is not root",
    "the other user cannot read the runner here": "a checkout in a home directory that is closed to others",
    "needs permission to create a PID namespace": "a kernel that refuses user namespaces",
    "this machine already blocks them": "a container whose seccomp profile is stricter than the runner's",
    "there are no timers": "Windows",
}
"""Reason of a skip -> the platform that cannot run the test."""


class LeftOutFiles(pytest.Item):
    """A test that fails with the names of test files that pytest did not collect."""

    def __init__(self, files: list[str], **options: Any) -> None:
        super().__init__(**options)
        self._files = files

    def runtest(self) -> None:
        """Fail."""
        pytest.fail(f"pytest collected no test of {', '.join(self._files)}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where reports place this test."""
        return self.path, 0, self.name


class CompleteRun:
    """A pytest plugin that fails what a complete run must not leave out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add a failing test if a tracked file of the paths asked for has none. Marks deselect later."""
        asked = [session.config.invocation_params.dir / name for name in session.config.args]
        tracked = {path for path in tracked_files(self._directory) if any(map(path.is_relative_to, asked))}
        left_out = missing_files(tracked, {item.path for item in items})
        if left_out:
            where = f"{self._directory.name}::left-out-files"
            items.append(
                LeftOutFiles.from_parent(session, name="left-out-files", nodeid=where, files=left_out)
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn a skip into a failure."""
        return refuse_skip((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn the skip of a whole module into a failure."""
        return refuse_skip((yield))


def tracked_files(directory: Path) -> set[Path]:
    """Return the test files that git tracks in a directory."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "test_*.py", "**/test_*.py"],
        cwd=directory, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {path for name in listed.stdout.split("\0") if name and (path := directory / name).exists()}


def missing_files(tracked: set[Path], collected: set[Path]) -> list[str]:
    """Return the names of tracked files without a collected test, sorted. Pure."""
    return sorted(str(path) for path in tracked - collected)


def refuse_skip(report: Report) -> Report:
    """Return the report, as failed if it is a skip for a reason that PLATFORM_SKIPS does not list."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not is_platform_skip(reason):
        report.outcome = "failed"
        report.longrepr = (
            f"{report.nodeid} was skipped: {reason}. A complete run skips no test: install what is missing "
            "(`make tools`), or list the platform in PLATFORM_SKIPS of tests/complete.py."
        )
    return report


def is_platform_skip(reason: str) -> bool:
    """Return whether the list has the reason of a skip. Pure."""
    return any(listed in reason for listed in PLATFORM_SKIPS)
