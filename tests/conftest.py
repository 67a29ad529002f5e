"""Groups of tests that run in sequence on one pytest worker (`make test`). Called by pytest.

Tests of the installed service share it and its node and run in sequence; tests with their own processes
and namespaces run in parallel to them. A file of unit tests stays on one worker to share its fixtures.
"""

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

HERE = Path(__file__).parent
APART = ("cluster", "campaign", "fuzz")
"""Folders that use only the apiserver and the node, not the installed service."""


HARMLESS = ("unit", "registry", "heavy", "actions", "e2e")
"""Folders that may run on a shared cluster; tests/e2e/conftest.py excludes more."""

# Properties check correctness, not latency: no deadline on a busy machine.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that must not run on the cluster of the current context."""
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

    return Groups(config, log)


def harmless(path: Path) -> bool:
    """Return whether the tests of a file change a cluster only through the service. Pure."""
    return path.relative_to(HERE).parts[0] in HARMLESS


def group(path: Path) -> str:
    """Return the group of a test file. Pure."""
    first, *rest = path.relative_to(HERE).parts
    if first == "unit":
        return "/".join(rest)
    return "apart" if first in APART else "service"
