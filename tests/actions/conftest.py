"""The programs and workflows of the actions, against a stand-in of the service."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer

from tests.actions.acting import Act, repository_with_crew
from tests.actions.runner import Runner
from tests.actions.service import KEY, Service


@pytest_asyncio.fixture
async def service() -> AsyncIterator[Service]:
    found = Service()
    server = TestServer(found.app())
    await server.start_server()
    found.url = str(server.make_url("")).rstrip("/")
    yield found
    await server.close()


@pytest.fixture
def runner(tmp_path, service) -> Runner:
    (tmp_path / "workspace").mkdir()
    return Runner(tmp_path, service, service.url)


@pytest.fixture
def act(tmp_path, service) -> Act:
    repository_with_crew(tmp_path)
    secrets = {"CREWYARD_URL": service.url, "CREWYARD_API_KEY": KEY, "CREWYARD_PROJECT": "research"}
    return Act(tmp_path, secrets)
