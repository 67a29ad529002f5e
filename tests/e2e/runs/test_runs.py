"""Runs of a built crew that do what they should, through the API and through kubectl."""

import json

import pytest

from tests.e2e.conftest import BuiltCrew


def kinds(messages):
    return [message.event for message in messages]


async def test_run_has_events_output_and_artifacts(testbed, crew):
    run = await crew.run("kickoff", input={"name": "Ada"})
    assert run["status"] == "succeeded"
    assert run["output"] == {"greeting": "hello Ada", "home": "/home/crew"}
    assert run["input"] == {"name": "Ada"}
    assert run["deployment_id"] == crew.deployment

    messages = await testbed.events(run["id"])
    assert [message.id for message in messages] == [str(number) for number in range(1, len(messages) + 1)]
    assert kinds(messages)[0] == "run.started"
    assert kinds(messages)[-1] == "run.completed"
    assert messages[-1].data["output"] == run["output"]
    assert all(message.data["run_id"] == run["id"] for message in messages)
    logs = {(m.data["message"], m.data["level"]) for m in messages if m.event == "log"}
    assert {("hello Ada", "info"), ("to the other stream", "error")} <= logs
    assert any(text == "careful" and level == "warning" for text, level in logs)
    assert kinds(messages).index("agent.started") < kinds(messages).index("agent.completed")
    artifacts = {m.data["name"]: m.data["size"] for m in messages if m.event == "artifact"}
    assert artifacts == {"nested/report.md": 9, "data.json": 8}

    listed = await testbed.get(f"/v1/runs/{run['id']}/artifacts")
    assert {item["name"]: item["size"] for item in listed} == artifacts
    answer = await testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/nested/report.md")
    assert (answer.status, answer.body) == (200, b"# Report\n")


async def test_stream_resumes_after_every_event(testbed, crew):
    run = await crew.run("kickoff", input={})
    whole = await testbed.events(run["id"])
    for position, message in enumerate(whole[:-1]):
        rest = await testbed.events(run["id"], last_id=message.id)
        assert [m.id for m in rest] == [m.id for m in whole[position + 1 :]]
    assert await testbed.events(run["id"], last_id=whole[-1].id) == []
    assert sum(m.event in ("run.completed", "run.failed", "run.canceled") for m in whole) == 1


@pytest.mark.parametrize(("entrypoint", "output"), [("asynchronous", {"a": [1]}), ("nothing", None)])
async def test_entrypoint_kinds(crew, entrypoint, output):
    run = await crew.run(entrypoint, input={"a": [1]})
    assert (run["status"], run["output"]) == ("succeeded", output)


async def test_run_created_with_kubectl(testbed, crew):
    name = f"run-kubectl-{crew.project}"
    spec = {"project": crew.project, "entrypoint": "main:kickoff", "input": {"name": "Grace"}}
    await testbed.apply("Run", name, spec, "create")
    run = await crew.wait_finished(f"run_{name[4:]}")
    assert (run["status"], run["output"]["greeting"]) == ("succeeded", "hello Grace")
    await testbed.kubectl("wait", f"crun/{name}", "--for=condition=Succeeded", "--timeout=240s")
    columns = (await testbed.kubectl("get", "crun", name, "--no-headers")).split()
    assert columns[:2] == [name, "Succeeded"]
    assert "hello Grace" in await testbed.kubectl("logs", name)


async def test_crew_gets_its_variables_and_no_service_secrets(testbed, crew):
    answer = await testbed.call("PUT", f"/v1/projects/{crew.project}/env", {"variables": {"TIDE": "high"}})
    assert answer.status == 200 and "high" not in json.dumps(answer.body)
    seen = (await crew.run("environment"))["output"]
    assert seen["TIDE"] == "high"
    assert [name for name in seen if name.startswith("CREWYARD_")] == ["CREWYARD_RUN_ID"]


async def test_ten_thousand_lines_arrive_in_order(testbed, crew):
    run = await crew.run("lines", input={"count": 10_000})
    logs = [m.data["message"] for m in await testbed.events(run["id"]) if m.event == "log"]
    assert logs == [f"line {number}" for number in range(10_000)]


async def test_run_pods_satisfy_the_restricted_profile(testbed, crew):
    run = await crew.run("nothing")
    pod = json.loads(await testbed.kubectl("get", "pod", run["id"].replace("_", "-", 1), "-o", "json"))
    assert "volumes" not in pod["spec"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    copy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "crewyard-system"},
        "spec": {
            k: v
            for k, v in pod["spec"].items()
            if k not in ("nodeName", "serviceAccount", "serviceAccountName")
        },
    }
    printed = await testbed.kubectl(
        "create", "--dry-run=server", "-n", "crewyard-system", "-f", "-", stdin=json.dumps(copy)
    )
    assert "created" in printed


async def test_requests_above_the_limits_are_lowered(testbed, upload_projects):
    resources = {"requests": {"memory": "512Mi"}, "limits": {"memory": "256Mi"}}
    upload_project = await upload_projects(run={"resources": resources})
    deployment = await upload_project.deploy_and_wait({"main.py": "def kickoff(): return 'done'"})
    run = await BuiltCrew(testbed, upload_project.project, deployment).run("kickoff")
    assert (run["status"], run["output"]) == ("succeeded", "done")
    limited = (await testbed.get(f"/v1/projects/{upload_project.project}"))["limited"]
    assert "run.resources.requests.memory: 512Mi is lowered to its limit, 256Mi" in limited["message"]
