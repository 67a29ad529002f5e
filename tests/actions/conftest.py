"""Fixtures: the programs and workflows of the actions against a fake service."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer

from tests.actions.acting import ActRepository, repository_with_crew
from tests.actions.runner import ActionRunner
from tests.actions.service import KEY, FakeService


@pytest_asyncio.fixture
async def service() -> AsyncIterator[FakeService]:
    fake = FakeService()
    server = TestServer(fake.app())
    await server.start_server()
    fake.url = str(server.make_url("")).rstrip("/")
    yield fake
    await server.close()
    assert fake.undescribed == []


@pytest.fixture
def runner(tmp_path, service) -> ActionRunner:
    (tmp_path / "workspace").mkdir()
    return ActionRunner(tmp_path, service, service.url)


@pytest.fixture
def act(tmp_path, service) -> ActRepository:
    repository_with_crew(tmp_path)
    secrets = {"CREWYARD_URL": service.url, "CREWYARD_API_KEY": KEY, "CREWYARD_PROJECT": "research"}
    return ActRepository(tmp_path, secrets)
