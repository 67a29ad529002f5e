"""Every reason for which a run fails, each caused for real. The runs go on at the same time."""

import asyncio
import json
import os
import secrets
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.conftest import CREW, BuiltCrew
from tests.e2e.testbed import NAMESPACE, eventually
from tests.e2e.upload_project import tree

ENDINGS = {
    "endings:raises": ("CrewError", ["ValueError", "the tide is out"]),
    "endings:gives_an_object": ("CrewError", ["of type object at ['chart']", "no JSON form"]),
    "endings:needs_a_variable": ("CrewError", ["crewyard env set -p PROJECT CHART_API_KEY"]),
    "endings:exits": ("CrewError", ["3"]),
    "endings:leaves": ("CrewError", ["no more"]),
    "endings:killed": ("CrewError", ["SIGKILL"]),
    "endings:crashes": ("CrewError", ["SIGSEGV"]),
    "endings:hungry": ("OOMKilled", ["memory"]),
    "endings:fills": ("StorageExceeded", ["ephemeral-storage"]),
    "endings:missing": ("EntrypointNotFound", ["missing"]),
    "absent:kickoff": ("ImportError", ["no_such_module_anywhere"]),
    "nowhere:kickoff": ("EntrypointNotFound", ["nowhere"]),
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def begun(crew) -> dict[str, str]:
    """All of ENDINGS, started."""
    return {entrypoint: await crew.start(entrypoint) for entrypoint in ENDINGS}


@pytest.mark.parametrize("entrypoint", ENDINGS)
async def test_failed_crew(testbed, crew, begun, entrypoint):
    reason, words = ENDINGS[entrypoint]
    run = await crew.wait_finished(begun[entrypoint])
    assert run["status"] == "failed"
    assert run["error"]["reason"] == reason
    assert [word for word in words if word not in run["error"]["message"]] == []
    last = (await testbed.events(run["id"]))[-1]
    assert (last.event, last.data["error"]["reason"]) == ("run.failed", reason)
    shown = await testbed.object("runs", run["id"].replace("_", "-", 1))
    assert shown["status"]["error"] == run["error"]


async def test_run_timeout(crew):
    run = await crew.run("sleeps", timeout="3s")
    assert (run["status"], run["error"]["reason"]) == ("failed", "DeadlineExceeded")
    assert run["duration_ms"] >= 2900


async def test_evicted_pod(testbed, crew):
    run = await crew.start("sleeps")
    await crew.wait_for_log(run, "asleep")
    pod = run.replace("_", "-", 1)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": NAMESPACE},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    await testbed.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    done = await crew.wait_finished(run)
    assert (done["status"], done["error"]["reason"]) == ("failed", "Evicted")
    assert [item["name"] for item in await testbed.get(f"/v1/runs/{run}/artifacts")] == ["begun.txt"]


async def test_deleted_pod(testbed, crew):
    run = await crew.start("sleeps")
    await crew.wait_for_log(run, "asleep")
    await testbed.kubectl("delete", "pod", run.replace("_", "-", 1), "--wait=false")
    done = await crew.wait_finished(run)
    assert (done["status"], done["error"]["reason"]) == ("failed", "PodDeleted")
    assert [item["name"] for item in await testbed.get(f"/v1/runs/{run}/artifacts")] == ["begun.txt"]
    events = [message.event for message in await testbed.events(run)]
    assert events.count("run.started") == 1 and events[-1] == "run.failed"


def runner_of(uid: str) -> int | None:
    """The process of this machine that is process 1 of a run pod."""
    mark = uid.replace("-", "_")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                group = (entry / "cgroup").read_text()
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if (uid in group or mark in group) and b"/opt/crewyard/runner" in command:
                return int(entry.name)
    return None


async def test_killed_runner(testbed, crew):
    run = await crew.start("sleeps")
    await crew.wait_for_log(run, "asleep")
    pod = json.loads(await testbed.kubectl("get", "pod", run.replace("_", "-", 1), "-o", "json"))
    number = runner_of(pod["metadata"]["uid"])
    if number is None:
        pytest.skip("the pods' processes are not on this machine")
    os.kill(number, 9)
    done = await crew.wait_finished(run)
    assert (done["status"], done["error"]["reason"]) == ("failed", "RunnerLost")
    assert "SIGKILL" in done["error"]["message"]


async def test_missing_variable_starts_no_pod(testbed, crew):
    demanding = {**tree(CREW), "crew.toml": b'[run]\nenv_required = ["TIDE_TABLE", "PATIENCE"]\n'}
    deployment = await crew.upload_project.deploy_and_wait(demanding, preview={})
    run = await BuiltCrew(testbed, crew.project, deployment).run("kickoff")
    assert (run["status"], run["error"]["reason"]) == ("failed", "MissingVariable")
    assert "TIDE_TABLE" in run["error"]["message"] and "PATIENCE" in run["error"]["message"]
    assert "NotFound" in await testbed.kubectl("get", "pod", run["id"].replace("_", "-", 1), check=False)
    assert [message.event for message in await testbed.events(run["id"])] == ["run.failed"]


async def test_run_name_executes_once(testbed, crew):
    name = f"run-{secrets.token_hex(6)}"
    spec = {"deployment": crew.deployment.replace("_", "-", 1), "entrypoint": "main:kickoff"}
    await testbed.apply("Run", name, spec, "create")
    path = f"/v1/runs/run_{name[4:]}"
    assert (await crew.wait_finished(path.removeprefix("/v1/runs/")))["status"] == "succeeded"
    first = await eventually(lambda: testbed.get(path), lambda seen: seen["usage"] is not None)
    await testbed.kubectl("delete", "crun", name, "--timeout=240s")
    await testbed.apply("Run", name, spec, "create")
    await testbed.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=240s")
    assert (await testbed.object("runs", name))["status"]["error"]["reason"] == "AlreadyExecuted"
    assert await testbed.get(path) == first


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"deployment": "dep-none"}, "DeploymentNotFound"),
        ({"project": "no-such-project"}, "NoActiveDeployment"),
    ],
)
async def test_run_that_cannot_start(testbed, crew, spec, reason):
    name = f"run-{secrets.token_hex(6)}"
    await testbed.apply("Run", name, spec, "create")
    await testbed.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=240s")
    shown = await testbed.object("runs", name)
    assert (shown["status"]["phase"], shown["status"]["error"]["reason"]) == ("Failed", reason)
    seen = await crew.wait_finished(f"run_{name[4:]}")
    assert (seen["status"], seen["error"]["reason"]) == ("failed", reason)


async def test_orphan_children_do_not_block_the_end(crew):
    # The children sleep for ten minutes.
    run = await asyncio.wait_for(crew.run("endings:parent"), 500)
    assert (run["status"], run["output"]) == ("succeeded", "done")
