"""Runs that take a pod which has imported the entrypoint before them (spec.run.warm)."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from datetime import datetime

import pytest
import pytest_asyncio

from tests.e2e.conftest import LIMITS, BuiltCrew
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import UploadProject

CREW = """
import os, time, uuid
print("imported", flush=True)
PROCESS = uuid.uuid4().hex
VERSION = "first"

def kickoff(inputs):
    print("called", flush=True)
    time.sleep(inputs.get("seconds", 0))
    return {"process": PROCESS, "version": VERSION, "color": os.environ.get("COLOR")}
"""
CONFIG = '[deployment]\nentrypoint = "main:kickoff"\npython = "3.11"\n'
BROKEN = "import nothing_like_this\ndef kickoff(inputs): ...\n"
FILES = {"main.py": CREW, "crew.toml": CONFIG}
WAITING = "crewyard.dev/project={},crewyard.dev/warm,!crewyard.dev/run"


async def waiting_pods(testbed, project) -> list[dict]:
    """The pods that wait for a run and whose process is running."""
    text = await testbed.kubectl("get", "pods", "-l", WAITING.format(project), "-o", "json")
    pods = json.loads(text)["items"]
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


async def wait_for_pods(testbed, project, count=1, without=()) -> list[str]:
    """The names of the waiting pods, once there are as many, none of them among `without`."""

    async def look() -> list[str]:
        names = [pod["metadata"]["name"] for pod in await waiting_pods(testbed, project)]
        return [] if set(names) & set(without) else names

    return await eventually(look, lambda names: len(names) == count, 600)


async def imported(testbed, pod) -> None:
    """Wait until the API has seen the pod wait: its import is over by then, in a crew this small."""

    async def look() -> str:
        return await testbed.kubectl("logs", pod, check=False)

    await eventually(look, lambda text: "waits for a run" in text, 300)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def built(testbed) -> AsyncIterator[BuiltCrew]:
    """A project that keeps one pod waiting; built once."""
    project = f"e2e-warm-{secrets.token_hex(4)}"
    run = {"warm": 1, "resources": {"limits": LIMITS}}
    await testbed.post("/v1/projects", {"name": project, "plan": "pro", "run": run})
    deployment = await UploadProject(testbed, project).deploy_and_wait(FILES, message="First")
    yield BuiltCrew(testbed, project, deployment)
    await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")


@pytest_asyncio.fixture(loop_scope="session")
async def warm(testbed, built) -> AsyncIterator[BuiltCrew]:
    """The project with the first deployment active and one pod waiting, before and after a test."""
    yield built
    await testbed.call("PATCH", f"/v1/projects/{built.project}", {"run": {"warm": 1}})
    await testbed.call("POST", f"/v1/deployments/{built.deployment}/rollback", {})


async def start(warm, **more) -> str:
    return (await warm.testbed.post("/v1/runs", {"deployment": warm.project, **more}))["id"]


async def pod_of(testbed, run) -> dict:
    return (await testbed.object("runs", run.replace("_", "-", 1)))["status"]["pod"]


async def test_a_run_takes_the_waiting_pod(testbed, warm):
    """By the order of events: the pod existed and had imported before the run was created.

    Slow: its fixture builds a crew, and two generations of waiting pods start.
    """
    (name,) = await wait_for_pods(testbed, warm.project)
    pod = json.loads(await testbed.kubectl("get", "pod", name, "-o", "json"))
    await imported(testbed, name)
    run = await warm.wait_finished(await start(warm))
    assert run["status"] == "succeeded"
    assert (await pod_of(testbed, run["id"])) == {"name": name, "uid": pod["metadata"]["uid"]}
    started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert datetime.fromisoformat(started) < datetime.fromisoformat(run["created_at"])
    logs = [m.data["message"] for m in await testbed.events(run["id"]) if m.event == "log"]
    assert logs == ["imported", "called"]
    # Another one takes its place, and no pod serves twice.
    (second,) = await wait_for_pods(testbed, warm.project, without=[name])
    again = await warm.wait_finished(await start(warm))
    assert again["output"]["process"] != run["output"]["process"]
    assert (await pod_of(testbed, again["id"]))["name"] in (second, again["id"].replace("_", "-", 1))


async def test_of_two_runs_one_gets_the_pod_and_the_other_starts_cold(testbed, warm):
    (name,) = await wait_for_pods(testbed, warm.project)
    runs = await asyncio.gather(start(warm), start(warm))
    ended = [await warm.wait_finished(run) for run in runs]
    assert [run["status"] for run in ended] == ["succeeded", "succeeded"]
    assert len({run["output"]["process"] for run in ended}) == 2
    taken = [(await pod_of(testbed, run))["name"] for run in runs]
    assert taken.count(name) == 1


@pytest.mark.nightly
async def test_a_pod_killed_while_it_waits(testbed, warm):
    (name,) = await wait_for_pods(testbed, warm.project)
    await testbed.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
    run = await warm.wait_finished(await start(warm))
    assert run["status"] == "succeeded"
    assert (await pod_of(testbed, run["id"]))["name"] != name
    await wait_for_pods(testbed, warm.project, without=[name])


async def test_a_pod_killed_after_the_claim_is_not_replaced(testbed, warm):
    (name,) = await wait_for_pods(testbed, warm.project)
    run = await start(warm, input={"seconds": 600})
    await warm.wait_for_log(run, "called")
    await testbed.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
    ended = await warm.wait_finished(run)
    assert (ended["status"], ended["error"]["reason"]) == ("failed", "PodDeleted")
    logs = [m.data["message"] for m in await testbed.events(run) if m.event == "log"]
    assert logs.count("called") == 1


async def test_a_run_never_has_old_variables_or_an_old_deployment(testbed, warm):
    """Slow: three generations of waiting pods start."""
    (name,) = await wait_for_pods(testbed, warm.project)
    answer = await testbed.call("PUT", f"/v1/projects/{warm.project}/env/COLOR", {"value": "green"})
    assert answer.status in (200, 201, 204)
    run = await warm.wait_finished(await start(warm))
    assert run["output"]["color"] == "green"
    (second,) = await wait_for_pods(testbed, warm.project, without=[name])
    files = {"main.py": CREW.replace("first", "second"), "crew.toml": CONFIG}
    deployment = await warm.upload_project.deploy_and_wait(files)
    run = await warm.wait_finished(await start(warm))
    assert (run["deployment_id"], run["output"]["version"]) == (deployment, "second")
    await wait_for_pods(testbed, warm.project, without=[name, second])
    run = await warm.wait_finished(await start(warm))
    assert (run["output"]["version"], run["output"]["color"]) == ("second", "green")


@pytest.mark.nightly
async def test_an_import_that_fails(testbed, warm):
    await wait_for_pods(testbed, warm.project)
    await warm.upload_project.deploy_and_wait({"main.py": BROKEN, "crew.toml": CONFIG})
    project = await eventually(
        lambda: testbed.object("projects", warm.project),
        lambda seen: any(c["type"] == "WarmPodsFailing" for c in seen["status"]["conditions"]),
        600,
    )
    condition = next(c for c in project["status"]["conditions"] if c["type"] == "WarmPodsFailing")
    assert condition["reason"] == "WarmPodFailed" and "nothing_like_this" in condition["message"]
    run = await warm.wait_finished(await start(warm))
    assert (run["status"], run["error"]["reason"]) == ("failed", "ImportError")
    text = await testbed.kubectl("get", "events", "--field-selector", "reason=WarmPodFailed", "-o", "name")
    assert text.strip()


@pytest.mark.nightly
async def test_without_the_setting_no_pod_waits(testbed, warm):
    await wait_for_pods(testbed, warm.project)
    answer = await testbed.call("PATCH", f"/v1/projects/{warm.project}", {"run": {"warm": None}})
    assert answer.status == 200
    selector = WAITING.format(warm.project)
    await eventually(
        lambda: testbed.kubectl("get", "pods", "-l", selector, "-o", "name"),
        lambda text: not text.strip(),
        600,
    )
    run = await warm.wait_finished(await start(warm))
    assert (await pod_of(testbed, run["id"]))["name"] == run["id"].replace("_", "-", 1)
