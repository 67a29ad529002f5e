"""The audit log and the creators of objects, with changes on the real apiserver and the command line."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from sqlalchemy import update

from api.store.sql.schema import audit
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import name_of
from tests.unit.api.described import DESCRIPTION

CLIENT = Path(__file__).parents[3] / "client"
CREATED_BY = "crewyard.dev/created-by"


async def lines(testbed, path="/v1/audit"):
    headers = {"Authorization": f"Bearer {testbed.admin}", "Accept": "application/x-ndjson"}
    async with testbed.client.get(path, headers=headers) as response:
        raw = await response.read()
        DESCRIPTION.check("GET", path, response.status, response.headers, raw)
        assert response.status == 200, raw
        return [json.loads(line) for line in raw.splitlines()]


async def crewyard(testbed, *arguments, key=""):
    """Run the command line against the API server; return exit code, output and errors."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(CLIENT),
        "CREWYARD_URL": str(testbed.client.make_url("")).rstrip("/"),
        "CREWYARD_API_KEY": key or testbed.admin,
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "crewyard.cli.main",
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()


async def make_changes(testbed):
    """Make one change of each kind; return the caller and the objects' ids."""
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    git = {"source": {"git": {"url": "https://git.example/x.git", "suspend": True}}}
    await testbed.data("PATCH", "/v1/projects/crew", git)
    await testbed.data("PUT", "/v1/projects/crew/env/TOKEN", {"value": "not in the log"})
    commit = {"project": "crew", "source": {"git": {"commit": "a" * 40}}}
    deployment = (await testbed.data("POST", "/v1/deployments", commit))["id"]
    await testbed.mark_built("crew", name_of(deployment))
    while (await testbed.data("GET", f"/v1/deployments/{deployment}"))["status"] != "active":
        await asyncio.sleep(0.02)
    run = (await testbed.data("POST", "/v1/runs", {"deployment": "crew", "input": {"a": 1}}))["id"]
    await testbed.call("POST", f"/v1/runs/{run}/cancel")
    body = {"name": "ci", "scopes": ["run"], "projects": ["crew"]}
    key = (await testbed.data("POST", "/v1/api-keys", body))["id"]
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key}"))[0] == 204
    return deployment, run, key


async def test_every_change_is_recorded_once_before_it_happens(testbed):
    deployment, run, key = await make_changes(testbed)
    # Neither a read, nor a call without effect, nor one that is refused before it wrote anything.
    assert (await testbed.call("GET", "/v1/projects"))[0] == 200
    assert (await testbed.call("POST", "/v1/projects", {"name": "x", "plan": 1}))[0] == 400
    assert (await testbed.call("DELETE", "/v1/projects/none"))[0] == 404
    # Refused by the apiserver, after the record.
    assert (await testbed.call("POST", "/v1/projects", {"name": "crew"}))[0] == 409
    found = await lines(testbed)
    assert [(r["method"], r["path"], r["project"], r["target"], r["outcome"]) for r in found] == [
        ("POST", "/v1/projects", "crew", "crew", "accepted"),
        ("PATCH", "/v1/projects/crew", "crew", "crew", "accepted"),
        ("PUT", "/v1/projects/crew/env/TOKEN", "crew", "crew", "accepted"),
        ("POST", "/v1/deployments", "crew", deployment, "accepted"),
        ("POST", "/v1/runs", "crew", run, "accepted"),
        ("POST", f"/v1/runs/{run}/cancel", "crew", run, "accepted"),
        ("POST", "/v1/api-keys", "crew", key, "accepted"),
        ("DELETE", f"/v1/api-keys/{key}", "crew", key, "accepted"),
        ("POST", "/v1/projects", "crew", "crew", "accepted"),
        ("POST", "/v1/projects", "crew", "crew", "failed"),
    ]
    assert found[-1]["code"] == "conflict"
    caller = f"key:{testbed.admin.split('_')[1]}"
    assert {(r["actor"], r["remote"]) for r in found} == {(caller, "127.0.0.1")}
    assert "not in the log" not in json.dumps(found)
    _, _, headers = await testbed.call("DELETE", "/v1/projects/crew")
    newest = (await testbed.data("GET", "/v1/audit?per_page=1"))[0]
    assert (newest["request_id"], newest["path"]) == (headers["X-Request-Id"], "/v1/projects/crew")


async def test_a_repeatable_deployment_and_an_upload_name_their_object(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    archive = b"tar"
    made = await testbed.data("POST", "/v1/uploads", {"project": "crew", "size": len(archive)})
    path = made["upload_url"].removeprefix("http://crewyard.example")
    async with testbed.client.put(path, data=archive, headers=made["headers"]) as answer:
        assert answer.status == 200
    body = {"project": "crew", "build_context_url": made["build_context_url"]}
    deployment = await testbed.data("POST", "/v1/deployments", body, headers={"Idempotency-Key": "once"})
    assert [(r["path"], r["project"], r["target"]) for r in (await lines(testbed))[1:]] == [
        ("/v1/uploads", "crew", made["id"]),
        ("/v1/deployments", "crew", deployment["id"]),
    ]


async def test_the_creator_is_on_objects_and_rows(testbed):
    deployment, run, _ = await make_changes(testbed)
    caller = f"key:{testbed.admin.split('_')[1]}"
    for kind, name in ((PROJECT, "crew"), (DEPLOYMENT, name_of(deployment)), (RUN, name_of(run))):
        stored = await testbed.kube.get(kind, name)
        assert stored["metadata"]["annotations"][CREATED_BY] == caller
    for path in ("/v1/projects/crew", f"/v1/deployments/{deployment}", f"/v1/runs/{run}"):
        assert (await testbed.data("GET", path))["created_by"] == caller
    await testbed.data("POST", "/v1/api-keys", {"name": "ci", "scopes": ["run"]})
    assert (await testbed.data("GET", "/v1/api-keys"))[0]["created_by"] == caller


async def test_a_bound_admin_sees_only_its_projects(testbed):
    for name in ("one", "two"):
        await testbed.data("POST", "/v1/projects", {"name": name})
    body = {"name": "a", "scopes": ["admin"], "projects": ["two"]}
    bound = (await testbed.data("POST", "/v1/api-keys", body))["key"]
    await testbed.data("POST", "/v1/api-keys", {"name": "b", "scopes": ["run"]})
    own = {"headers": {"Authorization": f"Bearer {bound}"}}
    code, _, err = await crewyard(testbed, "audit", "--verify", key=bound)
    assert (code, "was changed" in err) == (2, False)
    assert "sees the records of some projects only" in err
    seen = await testbed.data("GET", "/v1/audit", **own)
    assert [(r["path"], r["project"]) for r in seen] == [("/v1/api-keys", "two"), ("/v1/projects", "two")]
    assert (await testbed.call("GET", "/v1/audit?project=one", **own))[0] == 403
    status, found, _ = await testbed.call("GET", "/v1/audit?from=soon")
    assert (status, found["error"]["details"]["field"]) == (400, "from")


async def test_the_command_line_verifies_and_notices_a_tampered_log(testbed, tmp_path):
    """Slow: six processes of the command line."""
    await make_changes(testbed)
    code, out, _ = await crewyard(testbed, "--json", "audit", "--verify")
    assert code == 0
    head = json.loads(out)
    assert head["number"] == len(await lines(testbed))
    code, out, _ = await crewyard(testbed, "audit", "--export")
    export = tmp_path / "audit.jsonl"
    export.write_text(out)
    known = f"{head['number']}:{head['hash']}"
    assert (await crewyard(testbed, "audit", "--verify", "--known", known))[0] == 0
    async with testbed.store.database.write() as connection:
        await connection.execute(update(audit).where(audit.c.number == 2).values(actor="key:else"))
    code, _, err = await crewyard(testbed, "audit", "--verify")
    assert (code, "record 2 was changed" in err) == (1, True)
    # The export from before is still intact.
    assert (await crewyard(testbed, "audit", "--verify", "--file", str(export), "--known", known))[0] == 0
    code, out, _ = await crewyard(testbed, "audit", "--actor", "key:else")
    assert (code, out.count("key:else")) == (0, 1)


@pytest.mark.parametrize(
    "arguments", [["--verify", "--project", "a"], ["--known", "1"], ["--verify", "--known", "1"]]
)
async def test_options_that_do_not_fit(testbed, arguments):
    assert (await crewyard(testbed, "audit", *arguments))[0] == 2
