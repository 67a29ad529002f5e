"""Order and groups of the tests on parallel pytest workers, and rules of a complete run. Called by pytest."""

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from tests import complete, lanes
from tests.lanes import HERE

HARMLESS = ("unit", "browser", "registry", "heavy", "actions", "e2e")
"""Folders that may run on a shared cluster; tests/e2e/conftest.py excludes more."""

UNIT_TIMEOUT_SECONDS = 300
"""A unit test takes a second. One that hangs must not wait for the timeout of tests with builds."""

# Properties check correctness, not latency: no deadline on a busy machine.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


# The default renders an exception with the variables of all frames, which takes a second.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_configure(config: pytest.Config) -> None:
    """Apply the rules of a complete run where the make target asks for one."""
    if os.environ.get(complete.VARIABLE) == "1":
        config.pluginmanager.register(complete.CompleteRun(HERE), "complete-run")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their parameter: packed files contain the time; workers must collect the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests, bound the unit tests; skip those that must not run on the current context's cluster."""
    items.sort(key=lambda item: lanes.rank(item.path))
    for item in items:
        if item.path.is_relative_to(HERE / "unit") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(UNIT_TIMEOUT_SECONDS))
    if os.environ.get("CREWYARD_CLUSTER") != "current":
        return
    for item in items:
        if not harmless(item.path):
            item.add_marker(pytest.mark.skip(reason="changes the whole cluster, which is shared"))


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection: each full one would visit them all."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign groups to workers with --dist loadscope. xdist marks would do the same on an older pytest."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lanes.group(config.rootpath / nodeid.partition("::")[0])

    # xdist would sort by the number of tests; the order is that of the collection.
    config.option.loadscopereorder = False
    return Groups(config, log)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the lock of the installed service during a test that uses it. The wait counts for no timeout."""
    if lanes.lane(item.path) is None:
        return (yield)
    with lanes.service_lock(exclusive=item.get_closest_marker("exclusive") is not None):
        return (yield)


def harmless(path: Path) -> bool:
    """Return whether the tests of a file change a cluster only through the service. Pure."""
    return path.relative_to(HERE).parts[0] in HARMLESS
