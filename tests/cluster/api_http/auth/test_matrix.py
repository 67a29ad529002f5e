"""Authorization of each operation of the OpenAPI document with Kubernetes tokens and the cluster's RBAC.

`tests/unit/api/auth/test_matrix.py` does the same with API keys, workflow tokens and bad credentials.
The API serves stored rows here too; only the tokens come from the cluster.
"""

import dataclasses

import pytest
from aiohttp.test_utils import TestClient, TestServer

from api.app import make_client_app
from api.auth.providers import TokenProviders
from api.config import parse
from api.services import SERVICES
from api.store.store import Store
from tests.cluster.api_http.auth.accounts import ACCOUNT, account, token
from tests.testbed.apiserver import plain_client
from tests.unit.api.auth.test_matrix import FOREIGN, OPERATIONS, OWN, call_all_operations, foreign, request
from tests.unit.api.conftest import NOW, ApiTestbed, key

SCOPES = ("read", "run", "deploy", "admin")


@pytest.fixture
async def row_testbed(tmp_path, kube):
    """A client API over stored rows that uses the cluster only to review tokens."""
    config = parse(
        {
            "CREWYARD_TOKEN_KEY": "0" * 32,
            "CREWYARD_DATA": str(tmp_path),
            "CREWYARD_PUBLIC_URL": "http://crewyard.example",
        }
    )
    store = await Store.open(tmp_path, "crews")
    unreachable = plain_client("http://127.0.0.1:1")
    text, record = key("admin")
    app = make_client_app(config, store, unreachable, {record.key_id: record}, lambda: NOW)
    tokens = TokenProviders.from_settings(config.identity, kube, store.workflows)
    app[SERVICES] = dataclasses.replace(app[SERVICES], tokens=tokens)
    async with TestClient(TestServer(app)) as client:
        testbed = ApiTestbed(client, store, text, {record.key_id: record}, [NOW])
        await testbed.add_example_objects()
        await testbed.add_example_objects(foreign)
        yield testbed
    await unreachable.close()
    await store.close()


async def test_scopes_and_projects_of_service_accounts(row_testbed, kube):
    bearers = {}
    for scope in SCOPES:
        await account(kube, scope, scope)
        bearers[f"only {scope}"] = await token(kube, scope)
    # Namespace permissions apply to all projects of the namespace.
    assert await call_all_operations(row_testbed, bearers, {OWN[0], FOREIGN[0]}) > 280


async def test_bad_tokens_are_refused_by_all_operations(row_testbed, kube):
    await account(kube, "ci", "admin")
    good = await token(kube, "ci")
    bad = {"other audience": await token(kube, "ci", "other"), "apiserver's": await token(kube, "ci", None)}
    bad["changed"] = good[:-6] + "AAAAAA"
    bad["deleted account's"] = good
    await kube.delete(ACCOUNT, "ci")
    for kind, bearer in bad.items():
        for method, path, _ in OPERATIONS:
            row_testbed.reset_rate_limits()
            url, body = request(method, path, False)
            status, response, _ = await row_testbed.call(method, url, body, bearer=bearer)
            assert status == 401, (kind, method, path, response)
