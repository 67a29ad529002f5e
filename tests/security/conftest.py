"""The fixtures of the end-to-end tests, for what looks at the installation with an attacker's eyes."""

from pathlib import Path

import pytest

from tests.e2e.conftest import host_address, workshops, yard

__all__ = ["host_address", "workshops", "yard"]


def pytest_collection_modifyitems(items):
    """All of them share one event loop, since they share connections."""
    for item in items:
        if Path(__file__).parent in Path(item.path).parents and "yard" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
