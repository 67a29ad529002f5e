"""One controller for two namespaces: what is in both, what is in one, and whose a name is."""

import asyncio

import pytest

from controller.process import ControllerProcess
from crds import kinds, pod_tokens
from kube import errors
from tests.cluster.controller.conftest import (
    ControllerTestbed,
    both_triggers,
    condition,
    controller,
    settings,
)
from tests.cluster.controller.test_run import NO_IMAGE
from tests.cluster.quotas import QUOTA, refuse_all

NEXT_SECOND = 1.1
"""Times of creation are whole seconds."""


def of_both(kube, team, **changes):
    return settings(kube.namespace, namespaces=(team.namespace,), **changes)


@pytest.fixture
async def testbeds(kube, team, trigger):
    """The installation's own namespace and that of a team, with one controller."""
    config = of_both(kube, team, kopf=trigger == "kopf")
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process), ControllerTestbed(team, config, process)


async def deploy(testbed, project, name):
    await testbed.project(project)
    # Its pods never start, so they cannot end before the test writes a result.
    await testbed.deployment(name, project, image=NO_IMAGE)
    await testbed.wait_active(name, project)


async def finish(testbed, name):
    await testbed.claim(name)
    await testbed.until(kinds.RUN, name, lambda o: o["status"]["phase"] == "Running")
    await testbed.report(name, "succeeded")
    assert (await testbed.wait_ended(name)).phase == "Succeeded"


def refused(obj):
    return condition(obj, "Ready") == ("False", "NameTaken")


@both_triggers
async def test_runs_of_two_namespaces_execute_in_their_own(testbeds):
    own, team = testbeds
    await deploy(own, "demo", "dep-own")
    await deploy(team, "theirs", "dep-team")
    # The same name in both: the namespaces share no queue, no cache and no pod.
    await own.run("run-a", project="demo")
    await team.run("run-a", project="theirs")
    for testbed, project in ((own, "demo"), (team, "theirs")):
        pod = await testbed.until(kinds.POD, "run-a", lambda _: True)
        assert pod["metadata"]["labels"]["crewyard.dev/project"] == project
        env = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
        token = next(text for name, text in env.items() if name.endswith("TOKEN"))
        verified = pod_tokens.verify(testbed.config.token_keys, token, 0)
        assert (verified.namespace, verified.name) == (testbed.kube.namespace, "run-a")
    await finish(own, "run-a")
    await finish(team, "run-a")


@both_triggers
async def test_of_two_projects_of_a_name_the_older_one_works(testbeds):
    own, team = testbeds
    await own.project("demo")
    await asyncio.sleep(NEXT_SECOND)
    await team.project("demo")
    await team.until(kinds.PROJECT, "demo", refused)
    await team.deployment("dep-team", image=NO_IMAGE)
    await team.run("run-team", project="demo")
    run = await team.wait_ended("run-team")
    assert (run.phase, (run.error or {})["reason"]) == ("Failed", "NoActiveDeployment")
    await own.deployment("dep-own", image=NO_IMAGE)
    await own.wait_active("dep-own")
    await own.run("run-own", project="demo")
    await finish(own, "run-own")
    theirs = await team.kube.get(kinds.PROJECT, "demo")
    assert theirs is not None and refused(theirs) and "activeDeployment" not in theirs["status"]
    assert (await team.kube.list(kinds.POD)).items == []
    await own.kube.delete(kinds.PROJECT, "demo")
    await team.wait_active("dep-team")
    freed = await team.until(kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == ("True", "NoSource"))
    assert condition(freed, "Stalled") is None
    await team.run("run-freed", project="demo")
    await finish(team, "run-freed")


async def test_a_restarted_controller_knows_both_namespaces_and_whose_a_name_is(kube, team):
    config = of_both(kube, team)
    own, theirs = ControllerTestbed(kube, config), ControllerTestbed(team, config)
    async with controller(kube, config):
        await deploy(theirs, "demo", "dep-team")
        await theirs.run("run-a", project="demo")
        await theirs.claim("run-a")
        await theirs.until(kinds.RUN, "run-a", lambda o: o["status"]["phase"] == "Running")
        await asyncio.sleep(NEXT_SECOND)
        await own.project("demo")
        await own.until(kinds.PROJECT, "demo", refused)
    # Meanwhile no controller runs; then the younger one is among the first objects that are seen.
    body = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    await kube.create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-own"}, "spec": body})
    await theirs.report("run-a", "succeeded")
    async with controller(kube, config):
        assert (await theirs.wait_ended("run-a")).phase == "Succeeded"
        await own.until(
            kinds.DEPLOYMENT, "dep-own", lambda o: (condition(o, "Ready") or ("", ""))[1] == "ProjectNotFound"
        )
        project = await own.kube.get(kinds.PROJECT, "demo")
        assert project is not None and refused(project) and "activeDeployment" not in project["status"]


async def test_a_quota_of_one_namespace_does_not_stop_the_other(testbeds):
    own, team = testbeds
    await deploy(own, "demo", "dep-own")
    await deploy(team, "theirs", "dep-team")
    await refuse_all(team.kube, kinds.POD)
    await team.run("run-team", project="theirs")
    refusal = await team.until(
        kinds.RUN, "run-team", lambda o: (condition(o, "Succeeded") or ("", ""))[1] == "PodRefused"
    )
    assert refusal["status"]["phase"] == "Pending"
    await own.run("run-own", project="demo")
    await finish(own, "run-own")
    await team.kube.delete(QUOTA, "none")
    await finish(team, "run-team")


async def test_a_namespace_that_may_not_be_read_stops_no_other(kube, team):
    config = of_both(kube, team, kopf=False)
    process, stop = ControllerProcess(kube, config), asyncio.Event()
    unreadable = process.namespaces[team.namespace].resync

    async def forbidden():
        raise errors.KubeForbidden(403, "Forbidden", "the roles are missing")

    unreadable.list_all = forbidden
    work = asyncio.create_task(process.run(stop))
    try:
        own = ControllerTestbed(kube, config, process)
        await deploy(own, "demo", "dep-own")
        await own.run("run-own", project="demo")
        await finish(own, "run-own")
        assert unreadable.forbidden and process.readings().resync_problem == ""
    finally:
        stop.set()
        await asyncio.wait_for(work, 120)


async def test_a_controller_of_one_namespace_leaves_the_others_alone(kube, team):
    config = settings(kube.namespace)
    async with controller(kube, config) as process:
        own, theirs = ControllerTestbed(kube, config, process), ControllerTestbed(team, config)
        await theirs.project("demo")
        await asyncio.sleep(NEXT_SECOND)
        await deploy(own, "demo", "dep-own")
        await own.run("run-own", project="demo")
        await finish(own, "run-own")
        untouched = await team.get(kinds.PROJECT, "demo")
        # What the schema gives it.
        assert untouched is not None and condition(untouched, "Ready") == ("Unknown", "Pending")
