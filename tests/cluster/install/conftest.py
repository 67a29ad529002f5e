"""An installation for one test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.install.installation import Installation, image
from tests.testbed.ports import free_port


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests on kind, even where helm is installed, as on GitHub's runners."""
    for item in items:
        if os.environ.get("CREWYARD_CLUSTER") == "kind" and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="its registry and addresses are the embedded node's"))


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation with its volume, not installed yet."""
    if shutil.which("helm") is None:
        pytest.skip("no helm: `make tools` builds it")
    made = Installation(free_port(), image())
    try:
        made.prepare()
        yield made
    finally:
        made.remove()
