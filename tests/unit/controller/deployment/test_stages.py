"""The steps and the stages of a build, as its pods show them."""

import json

import pytest

from controller.deployment.steps import ANNOTATION_STEP, BuildStep, build_steps, stages_of


@pytest.fixture
def build(make):
    """Return the stages of a build, created 100 s ago, from its pods as (kind, created, ended, report).

    `ended` is None while the pod runs, and 0 if it ended without a time.
    """

    def build(*pods):
        made = []
        for number, (kind, created, ended, report) in enumerate(pods, 1):
            metadata = {
                "creationTimestamp": make.ago(created),
                "annotations": {ANNOTATION_STEP: str(number)},
            }
            container = "assemble" if kind == "a" else "push"
            times = {"finishedAt": make.ago(ended)} if ended else {}
            terminated = {"exitCode": 0, "message": json.dumps(report), **times}
            statuses = [{"name": container, "state": {"terminated": terminated}}] if ended is not None else []
            same_kind = sum(one.name.startswith(f"dep-a-{kind}") for one in made)
            phase = "Running" if ended is None else "Succeeded"
            name = f"dep-a-{kind}{same_kind + 1}"
            made.append(make.pod(name, metadata=metadata, phase=phase, containerStatuses=statuses))
        deployment = make.deployment(built=False, metadata={"creationTimestamp": make.ago(100)})
        return stages_of(deployment, build_steps(made, None))

    return build


FETCHED = {"seconds": {"fetch": 0.25, "plan": 0.05}}
BUILT = {"seconds": {"fetch": 0.25, "plan": 0.05, "assemble": 0.4}}


def seconds(found):
    return {stage["name"]: stage.get("seconds") for stage in found}


def test_a_build_without_a_pod_has_no_stages(build):
    assert build() == []


def test_stages_of_one_pod(build, make):
    assert build(("a", 90, None, None)) == [
        {"name": "queued", "seconds": 10},
        {"name": "fetch", "startedAt": make.ago(90)},
    ]
    found = build(("a", 90, 88, BUILT))
    assert seconds(found) == {"queued": 10, "fetch": 0.25, "plan": 0.05, "assemble": 0.4}


def test_stages_of_a_build_with_dependencies(build, make):
    first = ("a", 90, 88, FETCHED)
    assert build(first, ("d", 87, None, None))[-1] == {"name": "dependencies", "startedAt": make.ago(87)}
    second = ("d", 87, 47, {})
    assert build(first, second, ("a", 46, None, None))[-1] == {"name": "assemble", "startedAt": make.ago(46)}
    found = build(first, second, ("a", 46, 45, BUILT))
    assert seconds(found) == {"queued": 10, "fetch": 0.25, "plan": 0.05, "dependencies": 40, "assemble": 0.7}
    assert [stage["name"] for stage in found] == ["queued", "fetch", "plan", "dependencies", "assemble"]


def test_stages_of_a_dependencies_pod_that_assembles(build):
    found = build(("a", 90, 88, FETCHED), ("d", 87, 47, BUILT))
    expected = {"queued": 10, "fetch": 0.25, "plan": 0.05, "dependencies": 39.3, "assemble": 0.7}
    assert seconds(found) == expected
    # The clocks of two machines.
    assert seconds(build(("a", 90, 88, FETCHED), ("d", 87, 87, BUILT)))["dependencies"] == 0


def test_a_retried_stage_counts_all_attempts(build, make):
    first, failed = ("a", 90, 88, FETCHED), ("d", 87, 77, {})
    assert seconds(build(first, failed, ("d", 70, 40, {})))["dependencies"] == 40
    assert build(first, failed, ("d", 70, None, None)) == [
        {"name": "queued", "seconds": 10},
        {"name": "fetch", "seconds": 0.25},
        {"name": "plan", "seconds": 0.05},
        {"name": "dependencies", "startedAt": make.ago(70)},
    ]
    assert seconds(build(first, ("a", 80, 70, {"seconds": {"fetch": 0.0004}})))["fetch"] == 0.25


def test_a_pod_that_ended_without_a_time_took_none(build):
    assert seconds(build(("a", 90, 88, FETCHED), ("d", 87, 0, {})))["dependencies"] == 0


@pytest.mark.parametrize("report", [{}, {"seconds": 3}, {"seconds": {"fetch": "1", "plan": -1, "other": 2}}])
def test_reports_of_other_forms_are_ignored(build, report):
    assert seconds(build(("a", 90, 88, report))) == {"queued": 10}


@pytest.mark.parametrize(
    ("pods", "recorded", "order", "latest", "total", "next_names"),
    [
        ([], None, [], None, 0, ("dep-a-a1", "dep-a-d1")),
        ([("dep-a-a1", 1)], "dep-a-a1", [0], 0, 1, ("dep-a-a2", "dep-a-d1")),
        # Pods are in the order of their steps.
        (
            [("dep-a-a2", 3), ("dep-a-d1", 2), ("dep-a-a1", 1)],
            "dep-a-a2",
            [2, 1, 0],
            0,
            3,
            ("dep-a-a3", "dep-a-d2"),
        ),
        # The recorded pod was deleted.
        ([("dep-a-a1", 1)], "dep-a-d1", [0], BuildStep("d", 1, None), 2, ("dep-a-a2", "dep-a-d2")),
        ([], "dep-a-d3", [], BuildStep("d", 3, None), 3, ("dep-a-a1", "dep-a-d4")),
        # An earlier pod is recorded: the write of the later one failed.
        ([("dep-a-a1", 1), ("dep-a-d2", 3)], "dep-a-d1", [0, 1], 1, 3, ("dep-a-a2", "dep-a-d3")),
        # Others were deleted: the number of the step remains.
        ([("dep-a-a3", 5)], None, [0], 0, 5, ("dep-a-a6", "dep-a-d3")),
        # Of two pods of a step the recorded one counts.
        ([("dep-a-a1", 1), ("warm-x-a1", 1)], "warm-x-a1", [0, 1], 1, 1, ("dep-a-a2", "dep-a-d1")),
        ([("dep-a-a1", 1), ("warm-x-a1", 1)], "dep-a-a1", [1, 0], 0, 1, ("dep-a-a2", "dep-a-d1")),
        ([("dep-a-a1", 1), ("warm-x-a1", 1)], None, [0, 1], 1, 1, ("dep-a-a2", "dep-a-d1")),
        # A pod without a step is before all others; a name without a number is of no step.
        ([("dep-a-a1", 1), ("dep-a-d1", None)], None, [1, 0], 0, 2, ("dep-a-a2", "dep-a-d2")),
        ([("dep-a-d1x", 9), ("dep-a-a1", 1)], "dep-a-d", [1], 1, 1, ("dep-a-a2", "dep-a-d1")),
    ],
)
def test_steps_of_a_build_and_the_name_of_the_next(make, pods, recorded, order, latest, total, next_names):
    """`order` and `latest` are positions in `pods`; a pod that was deleted is none of them."""
    made = [
        make.pod(name, metadata={"annotations": {} if step is None else {ANNOTATION_STEP: str(step)}})
        for name, step in pods
    ]
    found = build_steps(iter(made), recorded)
    assert [made.index(step.pod) for step in found.present] == order
    assert found.latest == (found.present[order.index(latest)] if isinstance(latest, int) else latest)
    assert found.total == total
    assert [found.next_name("dep-a", kind) for kind in ("a", "d")] == [
        (name, total + 1) for name in next_names
    ]
