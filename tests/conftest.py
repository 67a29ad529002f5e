"""Order and groups of the tests on parallel pytest workers, and rules of a complete run. Called by pytest.

Tests of the installed service share it and its node: they run in sequence, on one worker. All other tests
have their own processes and namespaces: each file is a group of its own, the slow ones first.
"""

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import complete

HERE = Path(__file__).parent
SERVICE = ("e2e", "security", "monitoring/test_scrape.py", "actions/test_real.py")
"""Tests of the installed service; tests of attacks on it and on its node."""
ORDER = (
    *SERVICE,
    "campaign",
    "cluster",
    "heavy",
    "clients",
    "registry",
    "monitoring",
    "actions",
    "fuzz",
    "unit",
)
"""A folder that takes minutes starts before one whose files take seconds."""
HARMLESS = ("unit", "registry", "heavy", "actions", "e2e")
"""Folders that may run on a shared cluster; tests/e2e/conftest.py excludes more."""

# Properties check correctness, not latency: no deadline on a busy machine.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    """Apply the rules of a complete run where the make target asks for one."""
    if os.environ.get(complete.VARIABLE) == "1":
        config.pluginmanager.register(complete.CompleteRun(HERE), "complete-run")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests into their order; skip those that must not run on the cluster of the current context."""
    items.sort(key=lambda item: rank(item.path))
    if os.environ.get("CREWYARD_CLUSTER") != "current":
        return
    for item in items:
        if not harmless(item.path):
            item.add_marker(pytest.mark.skip(reason="changes the whole cluster, which is shared"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign groups to workers. xdist marks would do the same, but need an older pytest."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(config.rootpath / nodeid.partition("::")[0])

    # xdist would sort by the number of tests; the order is that of the collection.
    config.option.loadscopereorder = False
    return Groups(config, log)


def harmless(path: Path) -> bool:
    """Return whether the tests of a file change a cluster only through the service. Pure."""
    return path.relative_to(HERE).parts[0] in HARMLESS


def rank(path: Path) -> int:
    """Return the place of a test file in the order. Pure."""
    return next((place for place, start in enumerate(ORDER) if _starts(path, start)), len(ORDER))


def group(path: Path) -> str:
    """Return the group of a test file. Pure."""
    if any(_starts(path, start) for start in SERVICE):
        return "service"
    return path.relative_to(HERE).as_posix()


def _starts(path: Path, start: str) -> bool:
    return path.is_relative_to(HERE / start)
