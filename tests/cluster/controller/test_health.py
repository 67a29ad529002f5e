"""Health of real objects in each state, by Flux (kstatus) and Argo CD (its script, in a Lua interpreter)."""

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
from tests.cluster.controller.conftest import ControllerTestbed, controller, settings
from tests.testbed.git_server import GitServer

SCRIPTS = Path(__file__).parents[3] / "manifests" / "argocd" / "argocd-cm.yaml"
PENDING = {"project": "demo"}


@pytest.fixture
async def testbed(kube):
    config = settings(kube.namespace)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


def kstatus(obj):
    """Return the kstatus of an object."""
    search_path = os.pathsep.join([os.environ.get("CREWYARD_TOOLS", ""), os.environ["PATH"]])
    program = shutil.which("kstatus", path=search_path)
    if program is None:
        pytest.skip("there is no kstatus on PATH or in CREWYARD_TOOLS: `make tools` builds it")
    result = subprocess.run(
        [program], input=json.dumps(obj), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(result.stdout)["status"]


def argocd(obj):
    """Return the health that Argo CD shows."""
    script = yaml.safe_load(SCRIPTS.read_text())["data"][
        f"resource.customizations.health.crewyard.dev_{obj['kind']}"
    ]
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    run = lua.eval(
        "function(obj, script) return load(script, 'health', 't', {obj = obj, ipairs = ipairs})() end"
    )
    result = run(lua.table_from(_table(lua, obj)), script)
    assert result["message"]
    return result["status"]


def _table(lua, value):
    if isinstance(value, dict):
        return lua.table_from({key: _table(lua, item) for key, item in value.items()})
    if isinstance(value, list):
        return lua.table_from([_table(lua, item) for item in value])
    return value


async def health(testbed, kind, name):
    obj = {"apiVersion": kind.api_version, "kind": kind.name, **await testbed.kube.get(kind, name)}
    return kstatus(obj), argocd(obj)


async def ready(testbed, reason):
    def holds(obj):
        conditions = {c["type"]: c for c in obj["status"].get("conditions", ())}
        observed = obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
        return observed and conditions.get("Ready", {}).get("reason") == reason

    await testbed.until(kinds.PROJECT, "demo", holds)


async def test_readable_project_is_current_and_healthy(testbed, tmp_path):
    with GitServer(tmp_path) as server:
        server.create("crew").commit({"main.py": "1"}, "A first commit")
        await testbed.project(source={"git": {"url": server.url("crew")}})
        await ready(testbed, "Resolved")
        assert await health(testbed, kinds.PROJECT, "demo") == ("Current", "Healthy")
        git = {"source": {"git": {"ref": {"branch": "none"}}}}
        await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": git})
        await ready(testbed, "BranchNotFound")
        assert await health(testbed, kinds.PROJECT, "demo") == ("Failed", "Degraded")
        await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"source": {"git": {"suspend": True}}}})
        await ready(testbed, "Suspended")
        assert await health(testbed, kinds.PROJECT, "demo") == ("Current", "Suspended")


async def test_project_with_unreachable_remote_is_in_progress(testbed):
    await testbed.project(source={"git": {"url": "http://127.0.0.1:9/crew.git"}})
    await ready(testbed, "Unreachable")
    assert await health(testbed, kinds.PROJECT, "demo") == ("InProgress", "Progressing")


async def test_project_without_source_is_healthy(testbed):
    await testbed.project()
    await ready(testbed, "NoSource")
    assert await health(testbed, kinds.PROJECT, "demo") == ("Current", "Healthy")


async def test_unobserved_objects_are_in_progress(kube):
    idle_testbed = ControllerTestbed(kube, settings(kube.namespace))
    await idle_testbed.project()
    await idle_testbed.run("run-a", project="demo")
    body = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    await kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": body})
    for kind, name in ((kinds.PROJECT, "demo"), (kinds.DEPLOYMENT, "dep-a"), (kinds.RUN, "run-a")):
        assert await health(idle_testbed, kind, name) == ("InProgress", "Progressing")


async def test_health_of_deployments(testbed):
    await testbed.project()
    await testbed.deployment("dep-a")
    await testbed.wait_active("dep-a")
    assert await health(testbed, kinds.DEPLOYMENT, "dep-a") == ("Current", "Healthy")
    await testbed.deployment("dep-b")
    await testbed.wait_active("dep-b")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"]["phase"] == "Superseded")
    assert await health(testbed, kinds.DEPLOYMENT, "dep-a") == ("Current", "Healthy")
    body = {"project": "none", "source": {"archive": {"upload": "upl_1"}}}
    await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-c"}, "spec": body})
    await testbed.until(kinds.DEPLOYMENT, "dep-c", lambda o: o["status"].get("conditions"))
    assert await health(testbed, kinds.DEPLOYMENT, "dep-c") == ("InProgress", "Progressing")


async def test_health_of_runs(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image="registry.crewyard.internal:5000/none/none:none")
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", project="demo")
    await testbed.claim("run-a")
    await testbed.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
    assert await health(testbed, kinds.RUN, "run-a") == ("InProgress", "Progressing")
    await testbed.report("run-a", "succeeded")
    await testbed.wait_ended("run-a")
    assert await health(testbed, kinds.RUN, "run-a") == ("Current", "Healthy")
    await testbed.run("run-b", deployment="dep-none")
    await testbed.wait_ended("run-b")
    assert await health(testbed, kinds.RUN, "run-b") == ("Failed", "Degraded")
    await testbed.run("run-c", project="demo", cancel=True)
    await testbed.wait_ended("run-c")
    assert await health(testbed, kinds.RUN, "run-c") == ("Current", "Healthy")


async def test_reapplied_finished_run_keeps_its_outcome(testbed):
    await testbed.project()
    await testbed.deployment("dep-a", image="registry.crewyard.internal:5000/none/none:none")
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", project="demo")
    await testbed.claim("run-a")
    await testbed.report("run-a", "succeeded")
    first = await testbed.wait_ended("run-a")
    manifest = {"metadata": {"labels": {"applied": "again"}}, "spec": {"project": "demo"}}
    await testbed.kube.patch(kinds.RUN, "run-a", manifest)
    await testbed.settle()
    again = Run(await testbed.kube.get(kinds.RUN, "run-a"))
    assert (again.phase, again.uid, again.claim) == ("Succeeded", first.uid, first.claim)
