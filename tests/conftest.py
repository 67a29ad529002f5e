"""Which tests run one after the other where pytest has several workers (`make test`). Called by pytest.

What talks to the installed service shares it and its node, so that goes one by one; beside it goes what
brings processes and namespaces of its own. A file of unit tests stays together, for what it starts once.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
APART = ("cluster", "campaign", "fuzz")
"""What uses nothing of the installed service, but the apiserver and the node."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives every test its group."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item.path)))


def group(path: Path) -> str:
    """The group of a test file. Pure."""
    first, *rest = path.relative_to(HERE).parts
    if first == "unit":
        return "/".join(rest)
    return "apart" if first in APART else "service"
