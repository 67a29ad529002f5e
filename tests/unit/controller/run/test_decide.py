"""Decisions about one Run from the observed objects."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controller.config import Timing
from controller.run.decide import ObservedRun, decide
from controller.run.pod_ref import pod_uid
from controller.run.resolve import RunReady, missing_variable, resolve
from controller.runtime import event_map
from controller.runtime.decision import NOTHING, Decision, Delete, ObjectEvent
from crds import kinds
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS
from crds.times import format_time

PROJECT = {"apiVersion": kinds.PROJECT.api_version, "kind": "Project"}
DEPLOYMENT = {"apiVersion": kinds.DEPLOYMENT.api_version, "kind": "Deployment"}
OWNED = {"metadata": {"ownerReferences": [{"uid": "uid-demo"}]}}
STOPPED = Delete(kinds.POD, "run-a", "uid-run-a", grace_seconds=GRACE_SECONDS + FLUSH_SECONDS)
KILLED = replace(STOPPED, grace_seconds=0)
RECORDED = {"project": "demo", "deployment": "dep-a", "pod": {"name": "run-a", "uid": "uid-run-a"}}


def condition(decision, kind):
    found = [c for c in decision.status["conditions"] if c["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else None


def owners(decision):
    """Return the owners that a Decision adds to the Run after the status."""
    patches = [patch for patch in decision.after if patch.kind == kinds.RUN]
    return [owner["uid"] for patch in patches for owner in patch.body["metadata"]["ownerReferences"]]


def found(decision):
    """Return the pod's uid, the project and the deployment that a Decision records."""
    status = decision.status
    return status["pod"]["uid"], status["project"], status["deployment"]


@pytest.fixture
def look(make, config):
    def look(run, project="there", deployment="built", pod=None, variables=None, now=make.now):
        projects = {"there": make.project(), None: None}
        deployments = {
            "built": make.deployment(plan={}),
            "named": make.deployment(status={"plan": {"entrypoint": "a:b", "entrypoints": {"one": "a:b"}}}),
            "building": make.deployment(built=False),
            "failed": make.deployment(
                built=False, phase="Failed", status={"error": {"reason": "BuildTimeout", "message": "late"}}
            ),
            None: None,
        }
        project = projects[project] if project in ("there", None) else project
        deployment = deployments[deployment] if isinstance(deployment, str | None) else deployment
        resolution = resolve(run, project, deployment, make.now)
        if isinstance(resolution, RunReady) and variables is not None:
            resolution = missing_variable(resolution, variables) or resolution
        if pod is not None or pod_uid(run) is not None:
            resolution = None
        seen = ObservedRun(run, project, deployment, pod, resolution)
        return decide(seen, now, config)

    return look


def test_ready_run_is_enqueued_for_admission_without_a_write(make, look):
    decision = look(make.run())
    assert decision.status is None and not decision.create
    assert decision.enqueue == (event_map.admission("demo"),)


@pytest.mark.parametrize("entrypoint", ["one", "other:thing", "main.py"])
def test_run_selects_an_entrypoint_by_name_or_path(make, look, entrypoint):
    run = make.run(deployment="dep-a", entrypoint=entrypoint)
    assert look(run, deployment="named").status is None


@pytest.mark.parametrize(
    ("spec", "project", "deployment", "reason"),
    [
        ({"deployment": "dep-x"}, "there", None, "DeploymentNotFound"),
        ({"deployment": "dep-a", "project": "other"}, "there", "built", "DeploymentNotFound"),
        ({"project": "demo"}, "there", None, "NoActiveDeployment"),
        ({"project": "demo"}, None, None, "NoActiveDeployment"),
        ({"deployment": "dep-a"}, "there", "failed", "DeploymentFailed"),
        ({"deployment": "dep-a", "entrypoint": "two"}, "there", "named", "EntrypointNotFound"),
    ],
)
def test_unresolvable_run_fails_without_a_pod(make, look, spec, project, deployment, reason):
    decision = look(make.run(**spec), project, deployment)
    assert decision.status["phase"] == "Failed"
    assert decision.status["error"]["reason"] == reason
    assert decision.status["durationMs"] == 0
    assert condition(decision, "Succeeded") == ("False", reason)
    assert condition(decision, "Complete") == ("True", reason)
    assert condition(decision, "Stalled") == ("True", reason)
    assert condition(decision, "Reconciling") is None
    assert decision.events == (ObjectEvent(reason, decision.status["error"]["message"], warning=True),)
    assert [key.name for key in decision.enqueue] == [spec[field] for field in spec if field == "project"]
    # What was found is recorded, nothing else.
    recorded = (decision.status.get("project"), decision.status.get("deployment"))
    assert recorded == ("demo" if project else None, "dep-a" if deployment else None)
    assert owners(decision) == (["uid-demo"] if project else [])


def test_resolved_deployment_stays_after_another_activation(make, look):
    run = make.run(status={"project": "demo", "deployment": "dep-a"})
    assert look(run, make.project(status={"activeDeployment": "dep-b"})).enqueue


def test_run_of_a_building_deployment_waits_with_its_owner_set(make, look):
    decision = look(make.run(), deployment="building")
    assert decision.status["phase"] == "Pending"
    assert condition(decision, "Succeeded") == ("Unknown", "WaitingForDeployment")
    assert condition(decision, "Reconciling") == ("True", "WaitingForDeployment")
    assert (decision.status["project"], decision.status["deployment"]) == ("demo", "dep-a")
    assert decision.after[0].body["metadata"]["ownerReferences"][0]["uid"] == "uid-demo"
    owned = make.run(metadata={"ownerReferences": [{"uid": "uid-demo"}]}, project="demo")
    assert look(owned, deployment="building").after == ()


@pytest.mark.parametrize(("names", "missing"), [((), True), (("OTHER",), True), (("KEY",), False)])
def test_required_variables_are_checked_before_the_pod(make, look, names, missing):
    deployment = make.deployment(status={"plan": {"envRequired": ["KEY"]}})
    decision = look(make.run(), deployment=deployment, variables=frozenset(names))
    assert (decision.status is not None) == missing
    if missing:
        assert decision.status["error"]["reason"] == "MissingVariable"
        assert "crewyard env set -p demo KEY" in decision.status["error"]["message"]


def test_plain_variable_of_the_project_counts(make, look):
    project = make.project(pod={"env": [{"name": "KEY", "value": "x"}]})
    deployment = make.deployment(status={"plan": {"envRequired": ["KEY"]}})
    assert look(make.run(), project, deployment, variables=frozenset()).enqueue


def test_canceled_pending_run_never_starts(make, look):
    decision = look(make.run(project="demo", cancel=True))
    assert decision.status["phase"] == "Canceled"
    assert decision.status["error"] is None
    assert condition(decision, "Succeeded") == ("False", "Canceled")
    assert condition(decision, "Stalled") is None
    assert owners(decision) == ["uid-demo"]


@pytest.mark.parametrize(("deleted", "adopted"), [(None, ["uid-demo"]), (60, ["uid-demo"]), (0, [])])
def test_run_created_during_a_deletion_belongs_to_the_project(make, look, deleted, adopted):
    """An older one may have lost its owner to --cascade=orphan."""
    deletion = {} if deleted is None else {"deletionTimestamp": make.ago(deleted)}
    project = make.project(metadata=deletion)
    run = make.run(project="demo", cancel=True, metadata={"creationTimestamp": make.ago(30)})
    assert owners(look(run, project)) == adopted


def test_a_run_that_is_canceled_without_a_pod_names_its_deployment(make, look):
    canceled = look(make.run(project="demo", cancel=True)).status
    assert (canceled["phase"], canceled["project"], canceled["deployment"]) == ("Canceled", "demo", "dep-a")


def test_start_writes_no_status_until_claimed_or_late(make, look):
    run = make.run(metadata={"ownerReferences": [{"uid": "uid-demo"}]}, project="demo")

    def at(age, **more):
        starting = {"phase": "Pending", "conditions": make.scheduled(age), **more}
        return look(run, pod=make.pod(metadata={"creationTimestamp": make.ago(age)}, **starting))

    early = at(1)
    assert early.status is None and not early.enqueue
    assert early.requeue_after == pytest.approx(14)
    late = at(15)
    assert condition(late, "Succeeded") == ("Unknown", "Starting")
    assert condition(late, "Admitted") == ("True", "Admitted")
    assert late.status["pod"] == {"name": "run-a", "uid": "uid-run-a"}
    assert (late.status["project"], late.status["deployment"]) == ("demo", "dep-a")
    # The slot was given when the pod was created, not when that is written.
    admitted = next(one for one in late.status["conditions"] if one["type"] == "Admitted")
    assert admitted["lastTransitionTime"] == make.ago(15)
    waiting = [{"name": "crew", "state": {"waiting": {"reason": "ErrImagePull", "message": "m"}}}]
    assert at(2, containerStatuses=waiting).status is None
    assert condition(at(4, containerStatuses=waiting), "Succeeded") == ("Unknown", "ImagePull")


def test_deployment_of_the_pod_precedes_the_active_one(make, look):
    project = make.project(status={"activeDeployment": "dep-b"})
    pod = make.pod(metadata={"creationTimestamp": make.ago(19)}, conditions=make.scheduled())
    assert look(make.run(), project, pod=pod).status["deployment"] == "dep-a"


def test_unclaimed_unrecorded_pod_is_recreated_after_deletion(make, look):
    decision = look(make.run(project="demo"), pod=None)
    assert decision.status is None and decision.enqueue == (event_map.admission("demo"),)


def test_run_whose_claiming_pod_is_deleted_fails(make, look):
    claim = {"podUid": "uid-gone", "time": make.ago(2)}
    decision = look(make.run(project="demo", status={"claim": claim}), pod=None)
    assert decision.status["error"]["reason"] == "PodDeleted"
    assert decision.status["pod"] == {"name": "run-a", "uid": "uid-gone"}
    assert condition(decision, "Admitted") == ("True", "Admitted")


def test_cancel_before_the_pod_is_recorded_deletes_the_pod(make, look):
    run = make.run(project="demo", cancel=True)
    assert [deleted.name for deleted in look(run, pod=make.pod()).delete] == ["run-a"]
    stopping = look(run, pod=make.pod(metadata={"deletionTimestamp": make.ago(-50)}))
    assert stopping == Decision(requeue_after=110.0)
    assert look(run, pod=make.pod(phase="Failed")).status["phase"] == "Canceled"
    assert look(run).status["phase"] == "Canceled"


def test_unrecorded_pod_is_observed_after_its_deployment_is_deleted(make, look):
    run = make.run(deployment="dep-x")
    ended = look(run, deployment=None, pod=make.pod(phase="Failed", containerStatuses=make.ended(code=77)))
    assert ended.status["error"]["reason"] == "AlreadyExecuted"
    assert found(ended) == ("uid-run-a", "demo", "dep-a")
    assert owners(ended) == ["uid-demo"] and ended.enqueue == (event_map.admission("demo"),)
    waiting = look(run, deployment=None, pod=make.pod(phase="Pending", conditions=make.scheduled()))
    assert waiting.status["phase"] == "Pending" and waiting.requeue_after > 0


def test_claimed_run_is_running_since_the_claim(make, look):
    claim = {"podUid": "uid-run-a", "time": make.ago(2)}
    decision = look(make.run(status={**RECORDED, "claim": claim}), pod=make.pod(conditions=make.scheduled()))
    assert decision.status["phase"] == "Running"
    assert decision.status["startTime"] == make.ago(2)
    assert decision.requeue_after > 3600
    assert "pod" not in decision.status


def test_short_run_is_written_once_with_its_owner(make, look):
    def claimed(seconds, **status):
        time = format_time(make.now - timedelta(seconds=seconds))
        return make.run(status={"claim": {"podUid": "uid-run-a", "time": time}, **status})

    for age in (0, 0.125):
        assert look(claimed(age), pod=make.pod()) == Decision(requeue_after=0.25 - age)
    for old in (0.25, 0.3, -5):
        assert look(claimed(old), pod=make.pod()).status["phase"] == "Running"
    ended = look(claimed(0.1, result={"outcome": "succeeded", "durationMs": 9}), pod=make.pod())
    assert ended.status["phase"] == "Succeeded"
    assert owners(ended) == ["uid-demo"]


def test_claim_writes_pod_project_and_deployment(make, look):
    claim = {"podUid": "uid-run-a", "time": make.ago(2)}
    queued = {"type": "Admitted", "status": "False", "reason": "Queued", "message": "m"}
    status = {"claim": claim, "conditions": [{**queued, "lastTransitionTime": make.ago(60)}]}
    decision = look(make.run(status=status), pod=make.pod(conditions=make.scheduled()))
    assert decision.status["phase"] == "Running"
    assert decision.status["pod"] == {"name": "run-a", "uid": "uid-run-a"}
    assert (decision.status["project"], decision.status["deployment"]) == ("demo", "dep-a")
    assert condition(decision, "Admitted") == ("True", "Admitted")


def test_result_ends_the_run_in_any_state_of_the_pod(make, look):
    status = {
        **RECORDED,
        "claim": {"podUid": "uid-run-a", "time": make.ago(2)},
        "result": {"outcome": "succeeded", "durationMs": 77},
    }
    for pod in (None, make.pod(), make.pod(phase="Failed")):
        decision = look(make.run(status=status), pod=pod)
        assert decision.status["phase"] == "Succeeded"
        assert decision.status["durationMs"] == 77
        assert decision.status["startTime"] == make.ago(2)
        assert not decision.delete and not decision.events
        assert decision.enqueue == (event_map.admission("demo"),)


EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
DELETED = {"metadata": {"deletionTimestamp": "2026-11-21T10:01:00Z"}}


@pytest.mark.parametrize(
    ("pod", "cancel", "later", "reason"),
    [
        ({}, False, 1, None),
        ({}, False, 58.5, None),
        ({}, False, 59, "PodDeleted"),
        (EVICTED, False, 1, "Evicted"),
        (DELETED, False, 1, "PodDeleted"),
        ({"phase": "Failed"}, False, 1, "PodDeleted"),
        ({}, True, 1, "Canceled"),
        (None, False, 1, "PodDeleted"),
    ],
)
def test_stopped_run_waits_for_the_reason_of_its_pod(make, look, pod, cancel, later, reason):
    claim = {"podUid": "uid-run-a", "time": make.ago(5)}
    result = {"outcome": "stopped", "durationMs": 4000}
    run = make.run(project="demo", cancel=cancel, status={**RECORDED, "claim": claim, "result": result})
    seen = make.pod(**pod) if pod is not None else None
    decision = look(run, pod=seen, now=make.now + timedelta(seconds=later))
    if reason is None:
        # From the crew's end, a second ago, and not from the claim.
        ended = make.now - timedelta(seconds=1)
        until = ended + timedelta(seconds=GRACE_SECONDS + FLUSH_SECONDS)
        assert decision.status is None
        assert decision.requeue_after == (until - make.now).total_seconds() - later
    else:
        assert condition(decision, "Succeeded") == ("False", reason)


def test_deleted_recorded_pod_is_not_recreated(make, look):
    decision = look(make.run(status=RECORDED))
    assert decision.status["error"]["reason"] == "PodDeleted"
    assert not decision.create and decision.enqueue == (event_map.admission("demo"),)


def test_cancel_deletes_the_pod_once_with_a_grace_period(make, look):
    claim = {"podUid": "uid-run-a", "time": make.ago(2)}
    run = make.run(project="demo", cancel=True, status={"claim": claim})
    canceling = ObjectEvent("Canceling", "Stopping the crew.")
    assert look(run, pod=make.pod()) == Decision(delete=(STOPPED,), events=(canceling,))
    decision = look(run, pod=make.pod(metadata={"deletionTimestamp": make.ago(-50)}))
    assert decision == Decision(status=decision.status, requeue_after=110.0)
    assert decision.status["phase"] == "Running"
    assert found(decision) == ("uid-run-a", "demo", "dep-a")


@pytest.mark.parametrize(
    ("cancel", "phase", "reason"), [(True, "Canceled", "Canceled"), (False, "Failed", "NodeLost")]
)
def test_unstoppable_pod_is_force_deleted(make, look, cancel, phase, reason):
    status = {**RECORDED, "claim": {"podUid": "uid-run-a", "time": make.ago(200)}}
    run = make.run(project="demo", cancel=cancel, status=status)
    decision = look(run, pod=make.pod(metadata={"deletionTimestamp": make.ago(60)}))
    assert (decision.status["phase"], decision.delete, decision.delete_last) == (phase, (), (KILLED,))
    assert condition(decision, "Complete") == ("True", reason)
    waiting = look(run, pod=make.pod(metadata={"deletionTimestamp": make.ago(59)}))
    assert (waiting.delete, waiting.requeue_after) == ((), 1)


def test_a_run_on_a_silent_node_is_queued_again_before_its_claim(make, look):
    taint = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    run = make.run(project="demo", status=RECORDED)
    pod = make.pod(metadata={"deletionTimestamp": make.ago(61)}, conditions=[taint])
    decision = look(run, pod=pod)
    assert (decision.status, decision.delete[0].grace_seconds, bool(decision.requeue_after)) == (
        None,
        0,
        True,
    )
    # Once it is gone, its last version counts as failed.
    gone = make.pod(phase="Failed", conditions=[taint])
    assert look(run, pod=gone).status["phase"] == "Pending"


@pytest.mark.parametrize(
    ("ready", "reason"),
    [
        (None, "DeadlineExceeded"),
        ({"status": "True"}, "DeadlineExceeded"),
        ({"status": "False", "reason": "ContainersNotReady"}, "DeadlineExceeded"),
        # What the node controller of Kubernetes writes about the pods of a silent node.
        ({"status": "False"}, "NodeLost"),
    ],
)
def test_run_past_its_deadline_ends_and_its_pod_is_deleted(make, look, ready, reason):
    status = {**RECORDED, "claim": {"podUid": "uid-run-a", "time": make.ago(1000)}}
    seen = [{"type": "Ready", **ready}] if ready is not None else []
    pod = make.pod(spec={"activeDeadlineSeconds": 900}, conditions=seen)
    decision = look(make.run(status=status), pod=pod)
    assert (decision.status["error"]["reason"], decision.delete_last) == (reason, (STOPPED,))


def test_pod_without_a_deadline_has_the_timeout_of_its_run(make, look):
    """An admission policy or a webhook of the cluster may have removed it."""
    claim = {"podUid": "uid-run-a", "time": make.ago(2)}

    def left(run, plan, project):
        claimed = make.run(project="demo", status={**RECORDED, "claim": claim}, **run)
        deployment = make.deployment(status={"plan": plan})
        return look(claimed, make.project(run=project), deployment, make.pod()).requeue_after

    timeout = {"timeout": "7m"}
    assert left(timeout, {}, {}) == left({}, timeout, {}) == left({}, {}, timeout) < left({}, {}, {})


DELETED_A_MINUTE_AGO = {"metadata": {"deletionTimestamp": "2026-11-21T11:59:00Z"}}
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T11:55:00Z"}


@pytest.mark.parametrize(
    ("claimed", "pod", "reason", "deleted"),
    [
        (None, {"phase": "Pending"}, "Starting", ()),
        (None, {"phase": "Pending", "conditions": [SCHEDULED]}, "StartTimeout", (STOPPED,)),
        # Its creation counts, a minute ago.
        (None, {"conditions": [{**SCHEDULED, "lastTransitionTime": None}]}, "Starting", ()),
        (2, {}, "Running", ()),
        (1000, {"spec": {"activeDeadlineSeconds": 900}}, "DeadlineExceeded", (STOPPED,)),
        (200, DELETED_A_MINUTE_AGO, "NodeLost", (KILLED,)),
        (200, {"phase": "Failed"}, "RunnerLost", ()),
    ],
)
def test_first_status_with_a_pod_records_it_and_adopts_the_run(make, look, claimed, pod, reason, deleted):
    claim = {"claim": {"podUid": "uid-run-a", "time": make.ago(claimed)}} if claimed is not None else {}
    decision = look(make.run(status=claim), pod=make.pod(**pod))
    assert (condition(decision, "Succeeded")[1], decision.delete, decision.delete_last) == (
        reason,
        (),
        deleted,
    )
    assert found(decision) == ("uid-run-a", "demo", "dep-a")
    assert owners(decision) == ["uid-demo"]


QUESTION = {
    "request": "q1",
    "prompt": "Which way?",
    "time": "2026-11-21T11:59:00Z",
    "expirationTime": "2026-11-22T11:59:00Z",
}


def test_a_run_that_asks_a_person_waits_for_input(make, look):
    status = {**RECORDED, "claim": {"podUid": "uid-run-a", "time": make.ago(100)}}
    waiting = look(make.run(status={**status, "inputRequests": [QUESTION]}), pod=make.pod())
    assert condition(waiting, "WaitingForInput") == ("True", "WaitingForInput")
    assert condition(waiting, "Succeeded") == ("Unknown", "WaitingForInput")
    assert "'Which way?'" in waiting.status["conditions"][0]["message"]
    assert "request: q1" in waiting.status["conditions"][0]["message"]
    answered = look(make.run(status={**status, "inputRequests": []}), pod=make.pod())
    assert condition(answered, "WaitingForInput") is None
    assert condition(answered, "Succeeded") == ("Unknown", "Running")


def test_a_refused_answer_is_in_the_condition(make, look):
    status = {**RECORDED, "claim": {"podUid": "uid-run-a", "time": make.ago(100)}}
    questions = [{**QUESTION, "refusal": "value must be a string"}, {**QUESTION, "request": "q2"}]
    decision = look(make.run(status={**status, "inputRequests": questions}), pod=make.pod())
    message = decision.status["conditions"][0]["message"]
    assert "not accepted: value must be a string." in message and "1 more" in message


def test_the_end_of_a_run_clears_its_questions(make, look):
    status = {**RECORDED, "claim": {"podUid": "uid-run-a", "time": make.ago(100)}}
    run = make.run(cancel=True, status={**status, "inputRequests": [QUESTION]})
    decision = look(run, pod=make.pod(phase="Failed"))
    assert (decision.status["phase"], decision.status["inputRequests"]) == ("Canceled", [])
    assert condition(decision, "WaitingForInput") is None


@pytest.mark.parametrize(("asked", "limit"), [({}, 960), ({"inputRequests": []}, 5960)])
def test_only_a_run_that_asked_has_the_time_for_answers(make, look, asked, limit):
    """The kubelet's deadline contains it; a minute later the run ends without the kubelet."""
    pod = make.pod(
        metadata={"annotations": {"crewyard.dev/ask-seconds": "5000"}}, spec={"activeDeadlineSeconds": 5900}
    )

    def at(seconds):
        claim = {"podUid": "uid-run-a", "time": make.ago(seconds)}
        return look(make.run(status={**RECORDED, **asked, "claim": claim}), pod=pod)

    running = at(limit - 1)
    assert (running.status["phase"], running.requeue_after) == ("Running", 1)
    assert at(limit).status["phase"] == "Failed"


def test_ended_run_deletes_only_an_unreported_pod(make, look):
    ended = {**RECORDED, "phase": "Failed"}
    assert look(make.run(status=ended), pod=make.pod()).delete
    assert look(make.run(status={**ended, "result": {}}), project=None, pod=make.pod()) == NOTHING
    assert look(make.run(status=ended), project=None, pod=make.pod(phase="Failed")) == NOTHING
    assert look(make.run(status=ended), project=None) == NOTHING


@pytest.mark.parametrize("reported", [{}, {"result": {"outcome": "succeeded"}}])
def test_ended_run_force_deletes_a_pod_that_does_not_stop(make, look, reported):
    """No event follows where the kubelet does not respond; the pod holds a slot once the Run is deleted."""
    ended = make.run(status={**RECORDED, **reported, "phase": "Failed"}, **OWNED)

    def at(seconds):
        return look(ended, pod=make.pod(metadata={"deletionTimestamp": make.ago(seconds)}))

    assert at(59) == Decision(requeue_after=1)
    assert at(60) == Decision(delete=(KILLED,))


def test_ended_run_without_an_owner_gets_its_project(make, look):
    ended = {**RECORDED, "phase": "Failed"}
    assert owners(look(make.run(status=ended))) == ["uid-demo"]
    assert look(make.run(status=ended, **OWNED)) == NOTHING
    owned = {"metadata": {"ownerReferences": [{**DEPLOYMENT, "uid": "uid-dep-a"}]}}
    assert look(make.run(status=ended, **owned)) == NOTHING
    gone = {"metadata": {"deletionTimestamp": make.ago(1)}}
    assert look(make.run(status=ended, **gone)) == NOTHING
    # It is deleted with the Project that owns it.
    earlier = {"metadata": {"ownerReferences": [{**PROJECT, "uid": "uid-earlier"}]}}
    assert look(make.run(status=ended, **earlier)) == NOTHING
    # Its Project is being deleted, and may leave it.
    deleting = make.project(metadata={"deletionTimestamp": make.ago(5)})
    assert look(make.run(status=ended), project=deleting) == NOTHING


def test_run_under_deletion_is_ignored(make, look):
    assert look(make.run(metadata={"deletionTimestamp": make.ago(1)}, project="demo")) == NOTHING


def test_decision_is_idempotent(make, look, config):
    """Reconciling after a status write gives the same status: writes reach a fixed point."""
    pod = make.pod(phase="Pending", conditions=make.scheduled(5))
    run = make.run(status=RECORDED)
    first = look(run, pod=pod)
    written = replace(run, raw={**run.raw, "status": {**run.status, **first.status}})
    assert look(written, pod=pod).status == first.status
    assert Timing().start_timeout - 5 == pytest.approx(first.requeue_after, abs=1)
