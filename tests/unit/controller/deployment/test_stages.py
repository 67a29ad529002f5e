"""The stages of a build, as its pods show them."""

import json

import pytest

from controller.deployment.steps import ANNOTATION_STEP, build_steps, stages_of


@pytest.fixture
def build(make):
    """Return the stages of a build, created 100 s ago, from its pods as (kind, created, ended, report)."""

    def build(*pods):
        made = []
        for number, (kind, created, ended, report) in enumerate(pods, 1):
            metadata = {
                "creationTimestamp": make.ago(created),
                "annotations": {ANNOTATION_STEP: str(number)},
            }
            container = "assemble" if kind == "a" else "push"
            terminated = {"exitCode": 0, "message": json.dumps(report), "finishedAt": make.ago(ended or 0)}
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


def test_a_retried_stage_counts_all_attempts(build):
    first, failed = ("a", 90, 88, FETCHED), ("d", 87, 77, {})
    assert seconds(build(first, failed, ("d", 70, 40, {})))["dependencies"] == 40
    (*_, last) = build(first, failed, ("d", 70, None, None))
    assert last["name"] == "dependencies" and "seconds" not in last


@pytest.mark.parametrize("report", [{}, {"seconds": 3}, {"seconds": {"fetch": "1", "plan": -1, "other": 2}}])
def test_reports_of_other_forms_are_ignored(build, report):
    assert seconds(build(("a", 90, 88, report))) == {"queued": 10}
