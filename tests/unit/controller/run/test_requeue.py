"""A Run whose pod got no run slot from the API has not failed: it is queued again."""

import json

import pytest

from controller.run.decide import ObservedRun, decide
from controller.run.requeue import REJECTED_WITHIN_SECONDS, WAITED, starts_again
from controller.run.startup import check
from controller.runtime import event_map
from crds.names import LABEL_RUN, LABEL_WARM
from runner.pid1 import claim

RECORDED = {"project": "demo", "deployment": "dep-a", "pod": {"name": "run-a", "uid": "uid-run-a"}}


def finished(make, code=78, message=f"The run was not claimed: {WAITED}", outcome=None, **more):
    termination_message = json.dumps(
        {"outcome": outcome, "reason": None, "message": message, "reported": False}
    )
    return make.pod(
        phase="Failed", containerStatuses=make.ended(code=code, message=termination_message), **more
    )


def test_runner_and_controller_use_the_same_message():
    assert claim.WAITED == WAITED


def test_pod_is_cleared_from_status_before_its_deletion(make, config):
    def look_at(run):
        return decide(ObservedRun(run, make.project(), make.deployment(), finished(make)), make.now, config)

    first = look_at(make.run(project="demo", status=RECORDED))
    assert (first.delete, first.create, first.enqueue) == ((), (), (event_map.run("run-a"),))
    assert (first.status["phase"], first.status["pod"]) == ("Pending", None)
    words = {found["type"]: (found["status"], found["reason"]) for found in first.status["conditions"]}
    assert words["Admitted"] == ("False", "Queued")
    forgotten = {key: value for key, value in RECORDED.items() if key != "pod"}
    second = look_at(make.run(project="demo", status=forgotten))
    assert second.status is None
    assert [(deleted.name, deleted.uid, deleted.grace_seconds) for deleted in second.delete] == [
        ("run-a", "uid-run-a", 0)
    ]
    # The deletion of the pod may cause no event: no list shows a finished pod.
    assert second.requeue_after


@pytest.mark.parametrize(
    ("run", "pod", "phase"),
    [
        ({}, {"message": "The run was not claimed: the API did not respond"}, "Failed"),
        ({}, {"code": 77}, "Failed"),
        (
            {"status": {**RECORDED, "claim": {"podUid": "uid-run-a", "time": "2026-11-21T11:59:00Z"}}},
            {},
            "Failed",
        ),
        ({"cancel": True}, {}, "Canceled"),
    ],
)
def test_other_pod_failures_end_the_run(make, config, run, pod, phase):
    seen = ObservedRun(
        make.run(project="demo", **{"status": RECORDED, **run}),
        make.project(),
        make.deployment(),
        finished(make, **pod),
    )
    assert not starts_again(seen.run, seen.pod)
    assert decide(seen, make.now, config).status["phase"] == phase


WARM_RECORDED = {**RECORDED, "pod": {"name": "warm-demo-1", "uid": "uid-warm-demo-1"}}


def finished_warm(make, **more):
    labels = {LABEL_WARM: "f0", LABEL_RUN: "run-a"}
    return finished(make, name="warm-demo-1", metadata={"labels": labels}, **more)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"code": 77, "message": "The claim was denied: the name was executed before"}, "AlreadyExecuted"),
        ({"message": "The run was not claimed: the API did not respond"}, "StartTimeout"),
    ],
)
def test_a_run_that_a_warm_pod_cannot_claim_ends(make, config, pod, reason):
    """The next warm pod would get the same answer, and so on without end."""
    run = make.run(project="demo", status=WARM_RECORDED)
    seen = ObservedRun(run, make.project(), make.deployment(), finished_warm(make, **pod))
    assert not starts_again(seen.run, seen.pod)
    status = decide(seen, make.now, config).status
    assert (status["phase"], status["error"]["reason"]) == ("Failed", reason)


@pytest.mark.parametrize(
    "pod",
    [
        {"code": 79, "message": "No module named x"},
        {"code": 137, "message": ""},
        {},
        {"message": "the pod was stopped before the run was claimed", "outcome": "stopped"},
    ],
)
def test_a_run_whose_warm_pod_ends_before_the_claim_is_queued(make, pod):
    assert starts_again(make.run(project="demo", status=WARM_RECORDED), finished_warm(make, **pod))


def taken(make, reason, **more):
    kind = "TerminationTarget" if reason.startswith("Workload") else "DisruptionTarget"
    disruption = {"type": kind, "status": "True", "reason": reason, "message": "node drained"}
    waiting = [{"name": "crew", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    return make.pod(phase="Failed", conditions=[disruption], **{"containerStatuses": waiting, **more})


@pytest.mark.parametrize(
    "reason",
    [
        "EvictionByEvictionAPI",
        "PreemptionByScheduler",
        "DeletionByTaintManager",
        "DeletionByPodGC",
        "WorkloadEvictedDueToPreempted",
    ],
)
def test_a_run_whose_pod_the_cluster_took_before_its_claim_is_queued_again(make, config, reason):
    run = make.run(project="demo", status=RECORDED)
    seen = ObservedRun(run, make.project(), make.deployment(), taken(make, reason))
    assert starts_again(seen.run, seen.pod)
    decision = decide(seen, make.now, config)
    assert (decision.status["phase"], decision.status["pod"]) == ("Pending", None)
    assert [event.reason for event in decision.events] == ["GivenBack"]
    assert "node drained" in decision.events[0].message


@pytest.mark.parametrize("by_condition", [True, False])
@pytest.mark.parametrize("reason", ["Terminated", "Preempting"])
def test_a_run_whose_pod_the_kubelet_ended_before_its_claim_is_queued(make, config, reason, by_condition):
    """Its node shuts down, or needs the room for a critical pod."""
    pod = taken(make, "TerminationByKubelet") if by_condition else make.pod(phase="Failed")
    pod.raw["status"] |= {"reason": reason, "message": "imminent node shutdown"}
    run = make.run(project="demo", status=RECORDED)
    seen = ObservedRun(run, make.project(), make.deployment(), pod)
    assert starts_again(seen.run, seen.pod)
    (event,) = decide(seen, make.now, config).events
    expected = "node drained" if by_condition else "imminent node shutdown"
    assert (event.reason, expected in event.message) == ("GivenBack", True)


def rejected(make, reason, **more):
    return make.pod(phase="Failed", reason=reason, message=f"Pod was rejected: {reason}", **more)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("OutOfcpu", "RunnerLost"),
        ("OutOfpods", "RunnerLost"),
        ("UnexpectedAdmissionError", "RunnerLost"),
        ("NodeShutdown", "Evicted"),
        ("NodeAffinity", "Evicted"),
        # The node lacks memory or disk: the scheduler knows it a moment later.
        ("Evicted", "Evicted"),
    ],
)
def test_a_run_whose_pod_the_kubelet_rejected_is_queued_again(make, config, reason, end):
    def seen(**more):
        run = make.run(project="demo", status=RECORDED, **more)
        return ObservedRun(run, make.project(), make.deployment(), rejected(make, reason))

    assert starts_again(seen().run, seen().pod)
    (event,) = decide(seen(), make.now, config).events
    assert (event.reason, f"Pod was rejected: {reason}" in event.message) == ("GivenBack", True)
    old = seen(metadata={"creationTimestamp": make.ago(60 + REJECTED_WITHIN_SECONDS)})
    status = decide(old, make.now, config).status
    assert (status["phase"], status["error"]["reason"]) == ("Failed", end)


@pytest.mark.parametrize("reason", ["OutOfcpu", "Evicted"])
def test_a_pod_that_the_kubelet_admitted_was_not_rejected(make, reason):
    pod = rejected(make, reason, containerStatuses=make.ended(code=137))
    assert not starts_again(make.run(project="demo", status=RECORDED), pod)


@pytest.mark.parametrize(
    ("run", "pod", "ended"),
    [
        # The node lacked memory or disk: another pod could meet the same again and again.
        ({}, {"reason": "TerminationByKubelet"}, ("Failed", "Evicted")),
        (
            {"status": {**RECORDED, "claim": {"podUid": "uid-run-a", "time": "2026-11-21T11:59:00Z"}}},
            {},
            ("Failed", "Evicted"),
        ),
        (
            {"status": {**RECORDED, "claim": {"podUid": "uid-run-a", "time": "2026-11-21T11:59:00Z"}}},
            {"reason": "WorkloadEvictedDueToPreempted"},
            ("Failed", "Preempted"),
        ),
        ({"cancel": True}, {}, ("Canceled", None)),
        # Pods come and go for an hour, for example where a taint removes each one.
        ({"metadata": {"creationTimestamp": "2026-11-20T11:00:00Z"}}, {}, ("Failed", "Evicted")),
    ],
)
def test_a_claimed_run_or_another_end_is_not_repeated(make, config, run, pod, ended):
    seen = ObservedRun(
        make.run(project="demo", **{"status": RECORDED, **run}),
        make.project(),
        make.deployment(),
        taken(make, **{"reason": "EvictionByEvictionAPI", **pod}),
    )
    assert not starts_again(seen.run, seen.pod)
    status = decide(seen, make.now, config).status
    assert (status["phase"], (status.get("error") or {}).get("reason")) == ended


def test_start_timeout_counts_from_the_container_start(make, config):
    def at(seconds):
        return check(
            make.pod(
                conditions=make.scheduled(380),
                containerStatuses=[{"name": "crew", "state": {"running": {"startedAt": make.ago(seconds)}}}],
            ),
            make.now,
            config.timing,
        )

    assert at(300).outcome is None
    assert at(331).outcome is not None
