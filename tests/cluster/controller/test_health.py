"""What Flux (kstatus) and Argo CD (its script, in a Lua interpreter) make of real objects in each state."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import lupa
import pytest
import yaml

from crds import kinds
from crds.objects import Run
from tests.cluster.controller.conftest import Yard, controller, settings
from tests.testbed.git_server import GitServer

SCRIPTS = Path(__file__).parents[3] / "manifests" / "argocd" / "argocd-cm.yaml"
PENDING = {"project": "demo"}


@pytest.fixture
async def yard(kube):
    config = settings(kube.namespace)
    async with controller(kube, config) as process:
        yield Yard(kube, config, process)


def kstatus(obj):
    """What tools that wait by kstatus see."""
    places = os.pathsep.join([os.environ.get("CREWYARD_TOOLS", ""), os.environ["PATH"]])
    program = shutil.which("kstatus", path=places)
    if program is None:
        pytest.skip("there is no kstatus on PATH or in CREWYARD_TOOLS: `make tools` builds it")
    told = subprocess.run(
        [program], input=json.dumps(obj), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(told.stdout)["status"]


def argocd(obj):
    """What Argo CD shows."""
    script = yaml.safe_load(SCRIPTS.read_text())["data"][
        f"resource.customizations.health.crewyard.dev_{obj['kind']}"
    ]
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    run = lua.eval(
        "function(obj, script) return load(script, 'health', 't', {obj = obj, ipairs = ipairs})() end"
    )
    told = run(lua.table_from(_table(lua, obj)), script)
    assert told["message"]
    return told["status"]


def _table(lua, value):
    if isinstance(value, dict):
        return lua.table_from({key: _table(lua, item) for key, item in value.items()})
    if isinstance(value, list):
        return lua.table_from([_table(lua, item) for item in value])
    return value


async def both(yard, kind, name):
    found = {"apiVersion": kind.api_version, "kind": kind.name, **await yard.kube.get(kind, name)}
    return kstatus(found), argocd(found)


async def ready(yard, reason):
    def holds(obj):
        found = {c["type"]: c for c in obj["status"].get("conditions", ())}
        seen = obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
        return seen and found.get("Ready", {}).get("reason") == reason

    await yard.until(kinds.PROJECT, "demo", holds)


async def test_a_project_that_can_be_read_is_current_and_healthy(yard, tmp_path):
    with GitServer(tmp_path) as server:
        server.create("crew").commit({"main.py": "1"}, "A first commit")
        await yard.project(source={"git": {"url": server.url("crew")}})
        await ready(yard, "Resolved")
        assert await both(yard, kinds.PROJECT, "demo") == ("Current", "Healthy")
        git = {"source": {"git": {"ref": {"branch": "none"}}}}
        await yard.kube.patch(kinds.PROJECT, "demo", {"spec": git})
        await ready(yard, "BranchNotFound")
        assert await both(yard, kinds.PROJECT, "demo") == ("Failed", "Degraded")
        await yard.kube.patch(kinds.PROJECT, "demo", {"spec": {"source": {"git": {"suspend": True}}}})
        await ready(yard, "Suspended")
        assert await both(yard, kinds.PROJECT, "demo") == ("Current", "Suspended")


async def test_a_project_whose_remote_is_away_is_in_progress(yard):
    await yard.project(source={"git": {"url": "http://127.0.0.1:9/crew.git"}})
    await ready(yard, "Unreachable")
    assert await both(yard, kinds.PROJECT, "demo") == ("InProgress", "Progressing")


async def test_a_project_without_a_source_is_healthy(yard):
    await yard.project()
    await ready(yard, "NoSource")
    assert await both(yard, kinds.PROJECT, "demo") == ("Current", "Healthy")


async def test_what_no_controller_has_seen_yet_is_in_progress(kube):
    lonely = Yard(kube, settings(kube.namespace))
    await lonely.project()
    await lonely.run("run-a", project="demo")
    body = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    await kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": body})
    for kind, name in ((kinds.PROJECT, "demo"), (kinds.DEPLOYMENT, "dep-a"), (kinds.RUN, "run-a")):
        assert await both(lonely, kind, name) == ("InProgress", "Progressing")


async def test_deployments(yard):
    await yard.project()
    await yard.deployment("dep-a")
    await yard.active("dep-a")
    assert await both(yard, kinds.DEPLOYMENT, "dep-a") == ("Current", "Healthy")
    await yard.deployment("dep-b")
    await yard.active("dep-b")
    await yard.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"]["phase"] == "Superseded")
    assert await both(yard, kinds.DEPLOYMENT, "dep-a") == ("Current", "Healthy")
    body = {"project": "none", "source": {"archive": {"upload": "upl_1"}}}
    await yard.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-c"}, "spec": body})
    await yard.until(kinds.DEPLOYMENT, "dep-c", lambda o: o["status"].get("conditions"))
    assert await both(yard, kinds.DEPLOYMENT, "dep-c") == ("InProgress", "Progressing")


async def test_runs(yard):
    await yard.project()
    await yard.deployment("dep-a", image="registry.crewyard.internal:5000/none/none:none")
    await yard.active("dep-a")
    await yard.run("run-a", project="demo")
    await yard.claim("run-a")
    await yard.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
    assert await both(yard, kinds.RUN, "run-a") == ("InProgress", "Progressing")
    await yard.report("run-a", "succeeded")
    await yard.ended("run-a")
    assert await both(yard, kinds.RUN, "run-a") == ("Current", "Healthy")
    await yard.run("run-b", deployment="dep-none")
    await yard.ended("run-b")
    assert await both(yard, kinds.RUN, "run-b") == ("Failed", "Degraded")
    await yard.run("run-c", project="demo", cancel=True)
    await yard.ended("run-c")
    assert await both(yard, kinds.RUN, "run-c") == ("Current", "Healthy")


async def test_a_finished_run_that_is_applied_again_stays_as_it_ended(yard):
    await yard.project()
    await yard.deployment("dep-a", image="registry.crewyard.internal:5000/none/none:none")
    await yard.active("dep-a")
    await yard.run("run-a", project="demo")
    await yard.claim("run-a")
    await yard.report("run-a", "succeeded")
    first = await yard.ended("run-a")
    manifest = {"metadata": {"labels": {"applied": "again"}}, "spec": {"project": "demo"}}
    await yard.kube.patch(kinds.RUN, "run-a", manifest)
    await asyncio.sleep(1.5)
    again = Run(await yard.kube.get(kinds.RUN, "run-a"))
    assert (again.phase, again.uid, again.claim) == ("Succeeded", first.uid, first.claim)
