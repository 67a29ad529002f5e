"""How long build pods may take to start, to build and to be deleted."""

from datetime import timedelta

import pytest

from controller.config import Timing
from controller.deployment.build_result import BuildFailure
from controller.deployment.deadlines import PodWait, clean_up, wait
from controller.deployment.status import REUSED
from controller.runtime.decision import Decision, Delete
from crds import kinds

TIMING = Timing(
    start_timeout=300,
    unschedulable=600,
    image_pull=90,
    build_timeout=1800,
    build_pod_ttl=120,
    node_lost_after=60,
)
NO_NODE_HINT = "Lower spec.build.resources.requests of the Project, or add a node."
IMAGE_HINT = "Check the images in the settings of the installation: its nodes cannot pull this one."
CREATE_HINT = "Check the keys of the referenced Secrets, and spec.build.resources of the Project."

GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}


def failure(message, hint):
    return BuildFailure("BuildFailed", message, hint)


@pytest.mark.parametrize(
    ("ago", "left"), [(-30, 90.0), (30, 30.0), (59, 1.0), (59.5, 1.0), (60, 0.0), (61, 0.0)]
)
def test_deleted_pod_has_a_minute_to_end(make, ago, left):
    pod = make.pod(metadata={"deletionTimestamp": make.ago(int(ago))})
    assert wait(pod, make.now + timedelta(seconds=ago % 1), TIMING) == PodWait(left)


@pytest.mark.parametrize(
    ("ago", "conditions", "expected"),
    [
        (10, [], PodWait(590.0)),
        (10, [{"type": "Ready", "status": "True"}], PodWait(590.0)),
        (
            599,
            [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
            PodWait(1.0, "Unschedulable", "No node can schedule the pod: 0/3 nodes"),
        ),
        (
            600,
            [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
            PodWait(
                0.0,
                failure=failure("no node could schedule the build pod within 600 s: 0/3 nodes", NO_NODE_HINT),
            ),
        ),
        (599, [GATED], PodWait(1.0, "SchedulingGated", "The pod waits until a queue admits it: gates")),
        (
            600,
            [GATED],
            PodWait(
                0.0,
                failure=failure(
                    "the queue that the pod's labels name did not admit the build pod within 600 s: gates",
                    "Raise the quota of the queue, or unschedulable_seconds of the installation's limits.",
                ),
            ),
        ),
        (
            600,
            [],
            PodWait(
                0.0,
                failure=failure(
                    "no node could schedule the build pod within 600 s: no reason given", NO_NODE_HINT
                ),
            ),
        ),
    ],
)
def test_pod_without_a_node_fails_the_build_in_time(make, ago, conditions, expected):
    pod = make.pod(metadata={"creationTimestamp": make.ago(ago)}, conditions=conditions)
    assert wait(pod, make.now, TIMING) == expected


def test_a_node_without_times_counts_from_the_creation(make):
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": None}]
    for more in (conditions, [{"type": "PodScheduled", "status": "True"}]):
        pod = make.pod(metadata={"creationTimestamp": make.ago(100)}, conditions=more)
        assert wait(pod, make.now, TIMING) == PodWait(200.0)


def container(name, **state):
    return {"name": name, **state}


@pytest.mark.parametrize(
    ("reason", "more", "shown", "message", "hint"),
    [
        (
            "ErrImagePull",
            {"image": "r/kaniko", "message": "not found"},
            "ImagePull",
            "the image r/kaniko cannot be pulled: not found",
            IMAGE_HINT,
        ),
        (
            "ImagePullBackOff",
            {},
            "ImagePull",
            "the image of the build cannot be pulled: ImagePullBackOff",
            IMAGE_HINT,
        ),
        (
            "CreateContainerConfigError",
            {"image": "r/kaniko", "message": "no Secret"},
            "CreateContainerConfigError",
            "the container kaniko cannot start: no Secret",
            CREATE_HINT,
        ),
        (
            "RunContainerError",
            {},
            "RunContainerError",
            "the container kaniko cannot start: RunContainerError",
            CREATE_HINT,
        ),
    ],
)
def test_container_that_cannot_start_fails_the_build_in_time(make, reason, more, shown, message, hint):
    image = {"image": more["image"]} if "image" in more else {}
    waiting = {"reason": reason, **({"message": more["message"]} if "message" in more else {})}
    ended = {"terminated": {"finishedAt": make.ago(50)}}
    earlier = {"terminated": {"finishedAt": make.ago(55)}}

    def waits(scheduled, *before):
        statuses = [*before, container("kaniko", state={"waiting": waiting}, **image)]
        pod = make.pod(conditions=make.scheduled(scheduled), containerStatuses=statuses)
        return wait(pod, make.now, TIMING)

    assert waits(89) == PodWait(1.0, shown, message)
    assert waits(90) == PodWait(0.0, shown, failure=failure(message, hint))
    # The time begins when the last container before it has ended.
    before = [container("a", state=ended), container("b", state=earlier), container("c", state=None)]
    assert waits(900, *before) == PodWait(40.0, shown, message)
    assert waits(20, *before) == PodWait(70.0, shown, message)


@pytest.mark.parametrize(
    ("states", "spec", "left"),
    [
        ([], {}, 290.0),
        ([{"waiting": {"reason": "PodInitializing"}}], {"activeDeadlineSeconds": 900}, 290.0),
        ([None, {"waiting": {}}], {}, 290.0),
        ([{"running": {}}], {"activeDeadlineSeconds": 900}, 950.0),
        ([{"terminated": {}}, {"waiting": {}}], {"activeDeadlineSeconds": 900}, 950.0),
        ([{"waiting": {}}, {"running": {}}], {}, 1850.0),
    ],
)
def test_pod_has_time_to_start_then_to_build(make, states, spec, left):
    statuses = [container(str(number), state=state) for number, state in enumerate(states)]
    pod = make.pod(spec=spec, conditions=make.scheduled(10), containerStatuses=statuses)
    assert wait(pod, make.now, TIMING) == PodWait(left)


@pytest.fixture
def pods(make):
    """Three pods that have ended, one without a time, one that is deleted, and one that runs."""

    def ended(name, ago, created=500, **metadata):
        state = {"terminated": {"finishedAt": make.ago(ago)} if ago else {}}
        meta = {"creationTimestamp": make.ago(created), **metadata}
        return make.pod(
            name, metadata=meta, phase="Succeeded", containerStatuses=[container("a", state=state)]
        )

    return [
        ended("deleted", 400, deletionTimestamp=make.ago(5)),
        ended("old", 120),
        ended("new", 119),
        ended("newer", 40),
        ended("without-time", None, created=130),
        make.pod("running", phase="Running"),
    ]


@pytest.mark.parametrize(
    ("status", "needless"),
    [
        ({}, False),
        ({"conditions": [{"type": "Built", "status": "True", "reason": "Built"}]}, False),
        ({"conditions": [{"type": "Built", "status": "True", "reason": REUSED}]}, True),
        ({"phase": "Failed"}, True),
    ],
)
def test_pods_are_deleted_two_minutes_after_their_end(make, pods, status, needless):
    deployment = make.deployment(built=False, status=status)
    running = [Delete(kinds.POD, "running", "uid-running", 5)] if needless else []
    ended = [Delete(kinds.POD, name, f"uid-{name}") for name in ("old", "without-time")]
    assert clean_up(deployment, pods, make.now, TIMING) == Decision(
        delete=(*running, *ended), requeue_after=2.0
    )
    assert clean_up(deployment, pods[:2], make.now, TIMING) == Decision(delete=(ended[0],))
