"""Decisions about a Deployment that has an image and a smoke run."""

import json
from dataclasses import replace

import pytest

from controller.deployment import queue, status
from controller.deployment.build_result import ImageBuilt
from controller.deployment.decide import ObservedDeployment, decide
from controller.deployment.smoke.run_rejected import run_refused
from controller.owner import adoption
from controller.project.activation import Orders, active_deployment
from controller.project.phases import phase_patch
from controller.run import resolve
from controller.runtime.cache import ObjectCache
from controller.runtime.event_map import keys_of
from crds import kinds, names
from crds.objects import Deployment, Run

PLAN = {"framework": "python", "smoke": {"input": {"topic": "tides"}, "timeout": "2m"}}
IMAGE = "registry:5000/team/crews/demo@sha256:" + "ab" * 32
NAME = names.smoke_run("uid-dep-a")


def conditions_of(status):
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


@pytest.fixture
def untested(make):
    """A Deployment whose image was just recorded; `status` comes on top."""

    def untested(recorded=True, plan=PLAN, **spec):
        new = make.deployment(built=False, **spec)
        found = status.built(new, ImageBuilt(IMAGE, plan, "t", "k"), make.now)
        return Deployment(
            {**new.raw, "status": {**new.status, **found, **({"smokeRun": NAME} if recorded else {})}}
        )

    return untested


@pytest.fixture
def look(make, config):
    def look(deployment, run=None):
        return decide(ObservedDeployment(deployment, make.project(), (), smoke_run=run), make.now, config)

    return look


def after(deployment, decision):
    return Deployment({**deployment.raw, "status": {**deployment.status, **(decision.status or {})}})


def ended(make, phase, **more):
    return make.run(NAME, status={"phase": phase, **more}, project="demo", deployment="dep-a")


def test_an_image_with_a_smoke_run_is_not_built_yet(untested, make):
    deployment = untested()
    assert deployment.image == IMAGE and not deployment.built and deployment.awaits_smoke_run
    assert conditions_of(deployment.status) == {
        "Ready": ("Unknown", "SmokeRunning"),
        "Built": ("True", "Built"),
        "SmokeTested": ("Unknown", "SmokeRunning"),
        "Reconciling": ("True", "SmokeRunning"),
    }
    assert untested(plan={"framework": "python"}).built
    # It occupies no build slot and cannot become active.
    assert not queue.occupies_slot(deployment) and not queue.is_waiting(deployment)
    assert active_deployment([deployment], Orders({"dep-a": 3}, {}, 3)) is None


def test_a_reused_image_gets_a_smoke_run_of_its_own(make):
    source = make.deployment("dep-b", status={"plan": PLAN, "sourceKey": "k"})
    new = make.deployment(built=False)
    found = Deployment({**new.raw, "status": status.reused(new, source, "k", make.now)})
    assert found.awaits_smoke_run and not found.built
    assert conditions_of(found.status)["Built"] == ("True", "Reused")


@pytest.mark.parametrize("preview", [False, True])
def test_the_name_of_the_run_follows_from_the_deployment(untested, look, preview):
    deployment = untested(recorded=False, **({"preview": {}} if preview else {}))
    decision = look(deployment)
    [child] = decision.create
    assert child.kind == kinds.RUN and child.name == NAME and names.is_smoke_run(NAME)
    assert child.body["spec"] == {
        "project": "demo",
        "deployment": "dep-a",
        "input": {"topic": "tides"},
        "timeout": "2m",
    }
    assert child.body["metadata"]["labels"][names.LABEL_SMOKE] == "true"
    assert Run(child.body).owner_uids == {"uid-dep-a"}
    assert decision.status["smokeRun"] == NAME and decision.status["phase"] == "Building"
    # A restart before the write of the status creates the same name again.
    assert look(deployment) == decision


def test_nothing_is_written_while_the_run_lasts(untested, look, make):
    deployment = after(untested(), look(untested(), ended(make, "Running")))
    decision = look(deployment, ended(make, "Running"))
    assert not decision.create
    assert decision.status == {key: deployment.status.get(key) for key in decision.status}
    assert decision.requeue_after


def test_success_makes_it_built_and_phases_keep_the_condition(untested, look, make):
    deployment = untested()
    decision = look(deployment, ended(make, "Succeeded"))
    assert decision.enqueue == (("projects", "demo"),)
    built = after(deployment, decision)
    assert built.built and not built.awaits_smoke_run
    assert conditions_of(built.status)["SmokeTested"] == ("True", "SmokeSucceeded")
    [patch] = phase_patch(built, "dep-a", None, make.now)
    active = Deployment({**built.raw, "status": {**built.status, **patch.body["status"]}})
    assert active.built and active.phase == "Active"
    assert conditions_of(active.status)["SmokeTested"] == ("True", "SmokeSucceeded")
    assert phase_patch(active, "dep-a", None, make.now) == ()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"phase": "Failed", "error": {"reason": "CrewError", "message": "no tides"}}, "CrewError: no tides"),
        ({"phase": "Canceled"}, "was canceled"),
        (None, "was deleted"),
    ],
)
def test_any_other_end_fails_the_deployment_with_the_error(untested, look, make, run, said):
    found = run and make.run(NAME, status=run, project="demo")
    deployment = untested()
    failed = after(deployment, look(deployment, found))
    assert failed.failed and not failed.built and failed.image == IMAGE
    assert failed.error["reason"] == "SmokeFailed"
    assert NAME in failed.error["message"] and said in failed.error["message"]
    assert conditions_of(failed.status) == {
        "Ready": ("False", "SmokeFailed"),
        "Built": ("True", "Built"),
        "SmokeTested": ("False", "SmokeFailed"),
        "Stalled": ("True", "SmokeFailed"),
    }
    assert look(failed, found).status is None


def test_build_pods_are_deleted_while_the_run_lasts(untested, make, config):
    deployment, run = untested(), ended(make, "Running")

    def at(ended_ago, run):
        terminated = make.ended("assemble", finishedAt=make.ago(ended_ago))
        pod = make.pod("dep-a-a1", phase="Succeeded", containerStatuses=terminated)
        return decide(ObservedDeployment(deployment, make.project(), (pod,), smoke_run=run), make.now, config)

    over = at(121, run)
    assert [(pod.name, over.requeue_after) for pod in over.delete] == [("dep-a-a1", 60.0)]
    # Whichever comes first: the end of the pod's time, or the next look at the run.
    assert (at(100, run).delete, at(100, run).requeue_after) == ((), 21.0)
    assert (at(10, run).delete, at(10, run).requeue_after) == ((), 60.0)
    assert at(121, ended(make, "Succeeded")).requeue_after is None
    lost = at(121, ended(make, "Failed"))
    assert (lost.status["phase"], lost.enqueue) == ("Failed", (("projects", "demo"),))


def test_a_cancellation_of_the_deployment_cancels_the_run_first(untested, look, make):
    deployment = untested(cancel=True)
    decision = look(deployment, ended(make, "Running"))
    [patch] = decision.before
    assert (patch.kind, patch.name, patch.body) == (kinds.RUN, NAME, {"spec": {"cancel": True}})
    assert patch.subresource is None
    assert after(deployment, decision).error["reason"] == "Canceled"
    for over in (None, ended(make, "Failed"), make.run(NAME, project="demo", cancel=True)):
        assert look(deployment, over).before == ()


def test_only_the_smoke_run_starts_before_the_deployment_is_built(untested, make):
    deployment, project = untested(), make.project()
    own = make.run(NAME, project="demo", deployment="dep-a")
    other = make.run("run-a", project="demo", deployment="dep-a")
    assert isinstance(resolve.resolve(own, project, deployment, make.now), resolve.RunReady)
    assert isinstance(resolve.resolve(other, project, deployment, make.now), resolve.RunWaiting)
    building = make.deployment(built=False)
    assert isinstance(resolve.resolve(own, project, building, make.now), resolve.RunWaiting)


def test_a_rejected_run_is_tried_again_unless_it_is_invalid(untested, make, config):
    deployment = untested(recorded=False)

    def refused(final, limit):
        limited = replace(config, timing=replace(config.timing, unschedulable=limit))
        observed = ObservedDeployment(deployment, make.project(), ())
        return run_refused(observed, "exceeded quota", final, make.now, limited)

    waits = refused(False, 60)
    assert "exceeded quota" in waits.status["conditions"][0]["message"]
    assert waits.requeue_after and not waits.status["smokeRun"]
    for final, limit in ((True, 60), (False, 0)):
        over = after(deployment, refused(final, limit))
        assert over.failed and over.error["reason"] == "SmokeFailed"
        assert "exceeded quota" in over.error["message"]


def test_the_end_of_the_run_enqueues_its_deployment(make):
    raw = json.loads(json.dumps(ended(make, "Failed").raw))
    raw["metadata"]["labels"] = {names.LABEL_SMOKE: "true"}
    assert ("deployments", "dep-a") in set(keys_of(kinds.RUN, raw, ObjectCache()))
    raw["status"]["phase"] = "Running"
    assert ("deployments", "dep-a") not in set(keys_of(kinds.RUN, raw, ObjectCache()))
    assert ("deployments", "dep-a") in set(keys_of(kinds.RUN, raw, ObjectCache(), deleted=True))


def test_a_project_does_not_adopt_the_smoke_run(untested, look, make):
    [child] = look(untested(recorded=False)).create
    run = Run({**child.body, "metadata": {**child.body["metadata"], "resourceVersion": "1"}})
    assert adoption(kinds.RUN, run, make.project()) == ()
    assert adoption(kinds.RUN, make.run(), make.project())
