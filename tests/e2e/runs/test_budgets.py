"""Budgets of a project on the installed service: of each run, and of a month, for every client."""

import json

from tests.e2e.testbed import eventually

CREW = {
    "main.py": "import time\n"
    "from crewyard_runtime import emit\n"
    "def kickoff(inputs):\n"
    "    for number in range(inputs['calls']):\n"
    "        emit('usage', model='m', prompt_tokens=90, completion_tokens=10)\n"
    "        open(f'/app/artifacts/{number}.txt', 'w').close()\n"
    "        time.sleep(0.1)\n"
    "    return inputs['calls']\n"
}


async def ended(testbed, project, calls):
    """Start a run that makes this many model calls of 100 tokens; return it once it has ended."""
    body = {"deployment": project, "input": {"calls": calls}}
    run = (await testbed.post("/v1/runs", body))["id"]
    return await eventually(
        lambda: testbed.get(f"/v1/runs/{run}"), lambda seen: seen["completed_at"] is not None, 600
    )


async def test_a_run_above_its_budget_is_stopped_and_a_used_month_refuses_runs(testbed, upload_projects):
    """Slow: a build and three runs."""
    upload_project = await upload_projects(budget={"run": {"tokens": 500}})
    project = upload_project.project
    await upload_project.deploy_and_wait(CREW)

    within = await ended(testbed, project, 5)
    assert (within["status"], within["output"]) == ("succeeded", 5)
    above = await ended(testbed, project, 600)
    assert (above["status"], above["error"]["reason"]) == ("failed", "BudgetExceeded")
    assert "of 500 tokens" in above["error"]["message"]
    events = await testbed.events(above["id"])
    [warning] = [event.data for event in events if event.event == "budget.warning"]
    assert warning["tokens"] == {"used": 400, "limit": 500}
    assert [event.event for event in events][-1] == "run.failed"
    # What the crew has written until then is stored.
    assert {"0.txt", "4.txt"} <= {
        item["name"] for item in await testbed.get(f"/v1/runs/{above['id']}/artifacts")
    }
    item = await testbed.object("runs", above["id"].replace("_", "-", 1))
    assert (item["status"]["phase"], item["status"]["error"]["reason"]) == ("Failed", "BudgetExceeded")

    path = f"/v1/projects/{project}"
    report = await eventually(
        lambda: testbed.get(f"{path}/usage"), lambda seen: seen["total"]["runs"] == 2, 300
    )
    assert report["run_budget"] == {"tokens": 500, "cost": None} and report["total"]["prompt_tokens"] >= 990
    await testbed.call("PATCH", path, {"budget": {"month": {"tokens": 1100}}})
    refused = await testbed.call("POST", "/v1/runs", {"deployment": project, "input": {"calls": 1}})
    assert (refused.status, refused.body["error"]["code"]) == (409, "budget_exceeded")
    # A Run of kubectl fails without a pod, in the same words.
    await eventually(
        lambda: testbed.object("projects", project),
        lambda seen: any(
            (one["type"], one["status"]) == ("BudgetExceeded", "True") for one in seen["status"]["conditions"]
        ),
        300,
    )
    manifest = {
        "apiVersion": "crewyard.dev/v1alpha1",
        "kind": "Run",
        "metadata": {"name": f"run-{project}"},
        "spec": {"project": project, "input": {"calls": 1}},
    }
    await testbed.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    failed = await eventually(
        lambda: testbed.object("runs", f"run-{project}"),
        lambda seen: seen.get("status", {}).get("phase") == "Failed",
        300,
    )
    assert failed["status"]["error"] == {
        **failed["status"]["error"],
        "reason": "BudgetExceeded",
        "message": refused.body["error"]["message"],
    }
    assert "pod" not in failed["status"]
    # The month's budget was added to that of each run. A greater one accepts runs again.
    assert (await testbed.get(path))["budget"] == {"run": {"tokens": 500}, "month": {"tokens": 1100}}
    await testbed.call("PATCH", path, {"budget": {"month": {"tokens": 100_000}}})
    assert (await ended(testbed, project, 1))["status"] == "succeeded"
