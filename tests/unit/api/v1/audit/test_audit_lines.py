"""Records of calls in the audit log, and the log as JSON lines."""

import json

import pytest

from crewyard import audit_chain

UNKNOWN = [
    ("POST", "/v1/projects/demo/deliveries/msg_none/redeliver"),
    ("POST", "/v1/deployments/dep_none/rollback"),
    ("POST", "/v1/deployments/dep_none/cancel"),
    ("DELETE", "/v1/deployments/dep_none"),
    ("POST", "/v1/runs/run_none/cancel"),
    ("POST", "/v1/runs/run_none/rerun"),
    ("DELETE", "/v1/runs/run_none"),
    ("DELETE", "/v1/projects/none"),
    ("DELETE", "/v1/api-keys/none"),
]


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
async def test_a_call_that_changes_nothing_has_no_record(testbed, method, path):
    await testbed.add_project("demo")
    assert (await testbed.call(method, path))[0] == 404
    assert (await testbed.get("/v1/audit"))["data"] == []


async def test_a_path_with_a_line_separator_stays_one_line(testbed):
    await testbed.add_project("demo")
    # LINE SEPARATOR and NEXT LINE: many readers of lines split at these, too.
    await testbed.add_delivery("\u2028a\x85b", "demo", "run-a")
    path = "/v1/projects/demo/deliveries/%E2%80%A8a%C2%85b/redeliver"
    # Not by `call`: the description allows no such id.
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.request("POST", path, headers=headers) as answer:
        assert answer.status == 202
    raw = await testbed.get("/v1/audit", headers={"Accept": "application/x-ndjson"})
    [record] = [json.loads(line) for line in raw.decode().splitlines()]
    assert (record["target"], record["outcome"]) == ("\u2028a\x85b", "accepted")
    assert audit_chain.verify([record])[0] == 1
