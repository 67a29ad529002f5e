"""The audit log as JSON lines."""

import json

from crewyard import audit_chain


async def test_a_path_with_a_line_separator_stays_one_line(testbed):
    await testbed.add_project("demo")
    # LINE SEPARATOR and NEXT LINE: many readers of lines split at these, too.
    path = "/v1/projects/demo/deliveries/%E2%80%A8a%C2%85b/redeliver"
    assert (await testbed.call("POST", path))[0] == 404
    raw = await testbed.get("/v1/audit", headers={"Accept": "application/x-ndjson"})
    records = [json.loads(line) for line in raw.decode().splitlines()]
    assert [(record["target"], record["outcome"]) for record in records] == [
        ("\u2028a\x85b", "accepted"),
        ("\u2028a\x85b", "failed"),
    ]
    assert audit_chain.verify(records)[0] == 2
