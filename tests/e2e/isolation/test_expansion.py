"""A source that names a variable of its build: the kubelet puts it in nowhere; the build finds the source."""

import json
from collections.abc import AsyncIterator

import pytest_asyncio

from tests.e2e.git_project import GitProject

NAMED = "crews/$(CREWYARD_TOKEN)"
TOKEN = "WyJidWlsZCIs"
"""How each build's token begins."""
WRONG = '[deployment]\npython = "2.7"\n'


@pytest_asyncio.fixture(loop_scope="session")
async def source(git_project: GitProject) -> AsyncIterator[str]:
    """A repository with a directory of that name; gives its commit."""
    sha = git_project.repository.commit(
        {f"{NAMED}/main.py": "0", f"{NAMED}/crew.toml": WRONG}, "Name the token"
    )
    git = {"url": git_project.url, "path": NAMED, "interval": "1h"}
    await git_project.testbed.apply("Project", git_project.project, {"source": {"git": git}})
    yield sha


async def test_source_that_names_the_build_token_is_literal(git_project, source):
    made = await git_project.wait_finished(source)
    # The configuration was read: the build looked where the source is, not where the token would lead.
    assert made["status"]["error"]["reason"] == "ConfigInvalid", made["status"]
    assert "2.7" in made["status"]["error"]["message"]
    name = made["metadata"]["name"].replace("-", "_", 1)
    log = await git_project.testbed.call("GET", f"/v1/deployments/{name}/logs")
    for text in (json.dumps(made), bytes(log.body).decode()):
        assert TOKEN not in text, text
