"""Which tests run one after the other where pytest has several workers (`make test`). Called by pytest.

What talks to the installed service shares it and its node, so that goes one by one; beside it goes what
brings processes and namespaces of its own. A file of unit tests stays together, for what it starts once.
"""

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

HERE = Path(__file__).parent
APART = ("cluster", "campaign", "fuzz")
"""What uses nothing of the installed service, but the apiserver and the node."""


HARMLESS = ("unit", "registry", "heavy", "actions", "e2e")
"""What may be called on a cluster that others use; tests/e2e/conftest.py leaves out more."""

# A property says what is right, not how soon: a busy machine takes its time.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what `make` refuses on the cluster of somebody's context."""
    if os.environ.get("CREWYARD_CLUSTER") != "current":
        return
    for item in items:
        if not harmless(item.path):
            item.add_marker(pytest.mark.skip(reason="it changes the whole cluster, which is not only ours"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deals the groups out to the workers. Marks of xdist would say the same, but need an older pytest."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(config.rootpath / nodeid.partition("::")[0])

    return Groups(config, log)


def harmless(path: Path) -> bool:
    """Whether the tests of a file change nothing of a cluster but what the service is asked for. Pure."""
    return path.relative_to(HERE).parts[0] in HARMLESS


def group(path: Path) -> str:
    """The group of a test file. Pure."""
    first, *rest = path.relative_to(HERE).parts
    if first == "unit":
        return "/".join(rest)
    return "apart" if first in APART else "service"
