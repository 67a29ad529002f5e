"""Fixtures of the security tests, which attack the installation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.conftest import host_address, testbed, upload_projects
from tests.security.apiserver import ApiserverClient

__all__ = ["host_address", "testbed", "upload_projects"]


def pytest_collection_modifyitems(items):
    """All of them share one event loop, since they share connections."""
    for item in items:
        shared = {"testbed", "apiserver"} & set(getattr(item, "fixturenames", ()))
        if Path(__file__).parent in Path(item.path).parents and shared:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def apiserver() -> AsyncIterator[ApiserverClient]:
    """The apiserver of the dev cluster."""
    found = ApiserverClient()
    yield found
    await found.close()
