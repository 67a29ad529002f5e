"""Lists of a caller with rights that differ between projects, such as a bot that may only start runs."""

import pytest

from api.auth import authenticate
from api.auth.principal import Caller
from api.auth.scopes import Grants

READS, STARTS = frozenset({"read", "run"}), frozenset({"run"})


@pytest.mark.parametrize("everywhere", [None, STARTS])
async def test_lists_have_only_projects_that_the_caller_may_read(testbed, monkeypatch, everywhere):
    for name in ("a", "b"):
        await testbed.add_project(name, activeDeployment=f"dep-{name}")
        await testbed.add_deployment(f"dep-{name}", name)
        await testbed.add_run(f"run-{name}", name, f"dep-{name}")
    grants = Grants(everywhere, {"a": READS, "b": STARTS})
    rights = {"team-a": READS, "team-b": STARTS}
    bot = Caller(
        "kubernetes:bot", grants, None, None, "kubernetes", "kubernetes:bot", "token:x", rights, token="t"
    )

    async def known(*_):
        return bot

    monkeypatch.setattr(authenticate, "authenticate", known)
    assert (await testbed.call("GET", "/v1/runs/run_b"))[0] == 403
    assert [run["project"] for run in (await testbed.get("/v1/runs"))["data"]] == ["a"]
    assert [project["name"] for project in (await testbed.get("/v1/projects"))["data"]] == ["a"]
    assert [used["project"] for used in (await testbed.get("/v1/usage"))["data"]] == ["a"]
