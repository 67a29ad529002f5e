"""The outcome of a Run from every observable state of its pod."""

import json

import pytest

from controller.config import Timing
from controller.run.outcome import failed, of_pod, of_result
from controller.run.resolve import RunReady, missing_variable
from controller.run.startup import check

DISRUPTED = {"type": "DisruptionTarget", "status": "True", "message": "disrupted"}
STOPPED_BY_KUEUE = {"type": "TerminationTarget", "status": "True", "message": "to accommodate another"}
PREEMPTED_BY_KUEUE = {**STOPPED_BY_KUEUE, "reason": "WorkloadEvictedDueToPreempted"}


def termination_message(**message):
    return json.dumps(message)


@pytest.mark.parametrize(
    ("outcome", "cancel", "pod", "phase", "reason"),
    [
        ({"outcome": "succeeded"}, False, {}, "Succeeded", "Succeeded"),
        ({"outcome": "succeeded"}, True, {}, "Succeeded", "Succeeded"),
        ({"outcome": "failed", "reason": "ImportError"}, False, {}, "Failed", "ImportError"),
        ({"outcome": "failed", "reason": "DeadlineExceeded"}, True, {}, "Failed", "DeadlineExceeded"),
        ({"outcome": "failed"}, False, {}, "Failed", "CrewError"),
        ({"outcome": "stopped"}, True, {}, "Canceled", "Canceled"),
        ({"outcome": "stopped"}, False, {}, "Failed", "PodDeleted"),
        ({"outcome": "stopped"}, False, {"reason": "Evicted"}, "Failed", "Evicted"),
        ({"outcome": "stopped"}, False, {"conditions": [PREEMPTED_BY_KUEUE]}, "Failed", "Preempted"),
        ({"outcome": "succeeded"}, False, {"conditions": [PREEMPTED_BY_KUEUE]}, "Succeeded", "Succeeded"),
    ],
)
def test_result_determines_the_outcome(make, outcome, cancel, pod, phase, reason):
    run = make.run(project="demo", cancel=cancel, status={"result": {"durationMs": 5, **outcome}})
    end = of_result(run, make.pod(**pod))
    assert (end.phase, end.reason) == (phase, reason)
    assert end.message


STOPPED_AS_RUNNING = "the run's pod was deleted while its crew ran; create a new Run to execute it again"


@pytest.mark.parametrize(
    ("outcome", "told", "message"),
    [
        ("failed", "no key", "no key"),
        ("failed", None, "the crew failed; see its events"),
        ("stopped", "SIGTERM", "SIGTERM"),
        ("stopped", None, STOPPED_AS_RUNNING),
    ],
)
def test_a_crew_that_did_not_succeed_has_the_message_of_its_runner(make, outcome, told, message):
    result = {"outcome": outcome, "message": told, "durationMs": 5}
    reported = of_result(make.run(status={"result": result}), None)
    ended = make.ended(message=termination_message(**result))
    left = of_pod(make.run(), make.pod(phase="Failed", containerStatuses=ended))
    assert reported.message == left.message == message


@pytest.mark.parametrize("reason", ["no word", "", "Fine.", "NotOne", 5, ["a"], {"a": 1}, "x" * 200])
def test_unknown_reason_becomes_crew_error(make, reason):
    result = {"outcome": "failed", "reason": reason, "message": "m"}
    reported = of_result(make.run(status={"result": {"durationMs": 5, **result}}), None)
    left = of_pod(
        make.run(),
        make.pod(phase="Failed", containerStatuses=make.ended(message=termination_message(**result))),
    )
    assert reported.reason == left.reason == "CrewError"


@pytest.mark.parametrize("words", ["[" * 4096, '{"a":' * 800, "9" * 4096, "\ud800", "null"])
def test_any_termination_message_ends_the_run(make, words):
    left = of_pod(make.run(), make.pod(phase="Failed", containerStatuses=make.ended(code=1, message=words)))
    assert (left.phase, left.reason) == ("Failed", "RunnerLost")


def test_run_without_a_result_has_no_outcome(make):
    assert of_result(make.run(), None) is None


@pytest.mark.parametrize(
    ("pod", "containers", "reason"),
    [
        ({"reason": "Evicted", "message": "The node was low on memory."}, {}, "Evicted"),
        ({"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}, {}, "Evicted"),
        (
            {"reason": "Evicted", "message": "Pod ephemeral local storage usage exceeds the total limit"},
            {},
            "StorageExceeded",
        ),
        ({"reason": "DeadlineExceeded"}, {"code": 137}, "DeadlineExceeded"),
        ({"reason": "NodeLost"}, {}, "NodeLost"),
        ({"reason": "Terminated"}, {}, "Evicted"),
        ({"reason": "Preempting"}, {}, "Preempted"),
        ({"conditions": [{**DISRUPTED, "reason": "PreemptionByScheduler"}]}, {"code": 143}, "Preempted"),
        ({"conditions": [PREEMPTED_BY_KUEUE]}, {"code": 143}, "Preempted"),
        ({"conditions": [{**PREEMPTED_BY_KUEUE, "status": "False"}]}, {"code": 70}, "RunnerLost"),
        (
            {"conditions": [{**STOPPED_BY_KUEUE, "reason": "WorkloadEvictedDueToClusterQueueStopped"}]},
            {"code": 143},
            "Evicted",
        ),
        ({"conditions": [{**DISRUPTED, "reason": "DeletionByTaintManager"}]}, {}, "NodeLost"),
        ({"conditions": [{**DISRUPTED, "reason": "EvictionByEvictionAPI"}]}, {"code": 143}, "Evicted"),
        ({}, {"code": 137, "reason": "OOMKilled"}, "OOMKilled"),
        (
            {},
            {"code": 1, "message": termination_message(outcome="failed", reason="ImportError")},
            "ImportError",
        ),
        ({}, {"code": 0, "message": termination_message(outcome="stopped", reported=False)}, "PodDeleted"),
        ({}, {"code": 0, "message": termination_message(outcome="succeeded", reported=False)}, "RunnerLost"),
        ({}, {"code": 0}, "RunnerLost"),
        ({}, {"code": 77}, "AlreadyExecuted"),
        ({}, {"code": 78}, "StartTimeout"),
        ({}, {"code": 70}, "RunnerLost"),
        ({}, {"code": 137}, "RunnerLost"),
        ({}, {"code": 1, "message": "[1, 2]"}, "RunnerLost"),
        ({}, {"code": 2, "message": "no such file"}, "RunnerLost"),
    ],
)
def test_pod_that_ends_without_a_result_fails_the_run(make, pod, containers, reason):
    statuses = {"containerStatuses": make.ended(**containers)} if containers else {}
    end = of_pod(make.run(), make.pod(phase="Failed", **pod, **statuses))
    assert (end.phase, end.reason) == ("Failed", reason)
    assert end.message
    canceled = of_pod(make.run(project="demo", cancel=True), make.pod(phase="Failed", **pod, **statuses))
    assert canceled.phase == "Canceled"


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        ({"code": 0}, "the runner ended without reporting a result; create a new Run to execute it again"),
        ({"code": 3, "reason": "Error"}, "the runner ended with exit code 3: Error; create a new Run to"),
        ({"code": 70, "reason": "Error", "message": " no disk\n"}, "the runner failed: no disk; create a"),
        ({"code": 77}, "the run was not given to a second pod; each name executes once: create a Run with"),
        (
            {"code": 78, "message": "m"},
            "in time: m; check that pods reach the Service crewyard-api, then create a new Run",
        ),
        ({"code": 137}, "the runner was killed (SIGKILL); create a new Run"),
        # Of the runner: its words only.
        ({"code": 70, "message": termination_message(message="no disk")}, "failed: no disk; create a"),
        (
            {"code": 77, "message": termination_message(message="no such pod")},
            "not given to a second pod: no such pod; each name",
        ),
        (
            {"code": 0, "reason": "Error", "message": termination_message(outcome="succeeded", message=None)},
            "the runner ended without reporting a result; create a new Run",
        ),
    ],
)
def test_exit_of_the_runner_is_explained(make, ended, message):
    end = of_pod(make.run(), make.pod(phase="Failed", containerStatuses=make.ended(**ended)))
    assert message in end.message


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"message": "m", "reason": "Evicted", "conditions": [{**DISRUPTED, "reason": "r"}]}, "m"),
        ({"reason": "Evicted", "conditions": [{**DISRUPTED, "reason": "r"}]}, "disrupted"),
        ({"reason": "Evicted"}, "Evicted"),
        ({"reason": "UnexpectedAdmissionError"}, "UnexpectedAdmissionError"),
        ({}, "no reason given"),
    ],
)
def test_message_tells_why_the_cluster_stopped_the_pod(make, status, cause):
    end = of_pod(make.run(), make.pod(phase="Failed", **status))
    assert f": {cause}; create a new Run" in end.message


def test_message_is_bounded_and_printable(make):
    ugly = "\x00\x1b[31m\ud800é" * 9000
    for end in (failed("CrewError", ugly), failed("CrewError", "é" * 9000)):
        assert len(end.message) <= 4000
        assert "\x00" not in end.message and "\x1b" not in end.message
        end.message.encode()
    assert failed("CrewError", "a\x00b\x1b\n\tc").message == "a b \n\tc"


def test_many_missing_variables_leave_room_for_the_next_step(make):
    names = [f"{'V' * 240}_{number}" for number in range(128)]
    ready = RunReady(make.project(), make.deployment(status={"plan": {"envRequired": names}}))
    refused = missing_variable(ready, frozenset())
    end = failed(refused.reason, refused.message)
    assert end.message.endswith("then create a new Run") and "and 120 more" in end.message


@pytest.mark.parametrize("reason", ["Foo: bar", "x y", "", "é!", "\x00"])
def test_invalid_waiting_reason_is_not_repeated(make, reason):
    waiting = [{"name": "crew", "state": {"waiting": {"reason": reason, "message": "m"}}}]
    pod = make.pod(phase="Pending", conditions=make.scheduled(), containerStatuses=waiting)
    assert check(pod, make.now, Timing()).reason == "Starting"


def test_claimed_runner_without_an_api_server_is_lost(make):
    run = make.run(status={"claim": {"podUid": "x", "time": make.ago(5)}})
    pod = make.pod(phase="Failed", containerStatuses=make.ended(code=78))
    assert of_pod(run, pod).reason == "RunnerLost"


@pytest.mark.parametrize(("claimed_by", "reason"), [("uid-run-a", "RunnerLost"), ("x", "AlreadyExecuted")])
def test_a_refused_pod_that_claimed_the_run_is_lost(make, claimed_by, reason):
    run = make.run(status={"claim": {"podUid": claimed_by, "time": make.ago(8)}})
    pod = make.pod(phase="Failed", containerStatuses=make.ended(code=77))
    end = of_pod(run, pod)
    assert end.reason == reason
    assert ("its Project was deleted" in end.message) == (reason == "RunnerLost")


def test_pod_deleted_before_its_start_is_reported(make):
    assert of_pod(make.run(), None).reason == "PodDeleted"
    going = make.pod(phase="Failed", metadata={"deletionTimestamp": make.ago(1)})
    assert of_pod(make.run(), going).reason == "PodDeleted"


def test_pod_deleted_while_its_crew_ran_is_reported(make):
    going = {"metadata": {"deletionTimestamp": make.ago(1)}, "containerStatuses": make.ended(code=137)}
    end = of_pod(make.run(), make.pod(phase="Failed", **going))
    assert (end.reason, end.message) == ("PodDeleted", STOPPED_AS_RUNNING)


@pytest.mark.parametrize(
    ("since", "state", "reason", "end"),
    [
        (5, {}, "Starting", None),
        (5, {"waiting": {"reason": "ContainerCreating"}}, "Starting", None),
        (301, {"waiting": {"reason": "ContainerCreating"}}, "Starting", "StartTimeout"),
        (310, {"running": {}}, "Starting", None),
        (331, {"running": {}}, "Starting", "StartTimeout"),
        # The kubelet writes this before the pod's phase, and the runner's message says more.
        (310, {"terminated": {"exitCode": 78}}, "Starting", None),
        (331, {"terminated": {"exitCode": 78}}, "Starting", "StartTimeout"),
        # The runtime could not start the program.
        (310, {"terminated": {"exitCode": 128, "startedAt": "1970-01-01T00:00:00Z"}}, "Starting", None),
        (5, {"waiting": {"reason": "ErrImagePull", "message": "m"}}, "ImagePull", None),
        (91, {"waiting": {"reason": "ImagePullBackOff", "message": "m"}}, "ImagePull", "ImagePullFailed"),
        (0, {"waiting": {"reason": "InvalidImageName", "message": "m"}}, "ImagePull", "ImagePullFailed"),
        (5, {"waiting": {"reason": "CreateContainerError", "message": "m"}}, "CreateContainerError", None),
        (301, {"waiting": {"reason": "CreateContainerError", "message": "m"}}, None, "StartTimeout"),
    ],
)
def test_start_has_a_deadline(make, since, state, reason, end):
    pod = make.pod(
        phase="Pending",
        conditions=make.scheduled(since),
        containerStatuses=[{"name": "crew", "state": state}],
    )
    found = check(pod, make.now, Timing())
    assert reason is None or found.reason == reason
    assert (found.outcome.reason if found.outcome else None) == end
    assert found.retry_seconds > 0


@pytest.mark.parametrize(("age", "end"), [(60, None), (3601, "StartTimeout")])
def test_unschedulable_pod_has_the_message_of_the_scheduler(make, age, end):
    waiting = {"type": "PodScheduled", "status": "False", "message": "Insufficient memory"}
    made = {"creationTimestamp": make.ago(age)}
    found = check(make.pod(phase="Pending", metadata=made, conditions=[waiting]), make.now, Timing())
    assert found.reason == "Unschedulable"
    assert "Insufficient memory" in found.message
    assert (found.outcome.reason if found.outcome else None) == end


def test_a_gated_pod_waits_for_its_queue_as_long_as_for_a_node(make):
    gate = {
        "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }  # fmt: skip
    timing = Timing(unschedulable=100)
    pod = make.pod(phase="Pending", conditions=[gate], metadata={"creationTimestamp": make.ago(90)})
    state = check(pod, make.now, timing)
    assert (state.reason, state.outcome, state.retry_seconds) == ("SchedulingGated", None, 10)
    assert "queue" in state.message
    late = make.pod(phase="Pending", conditions=[gate], metadata={"creationTimestamp": make.ago(101)})
    end = check(late, make.now, timing).outcome
    assert end.reason == "StartTimeout"
    assert "did not admit" in end.message
