"""Pushes in quick succession: which heads wait, which are skipped, and how that is reported."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.project.coalesce import CoalescingWindow
from controller.project.decide import decide
from controller.source.observed import ObservedSource, ObservedSources, SourceProblem
from crds import conditions
from crds.deployment_name import git_name
from tests.unit.controller.conftest import NOW, Make

URL = "https://example.org/x.git"
GIT = {"url": URL}
TEN = CoalescingWindow(10.0)


def sha(number: int) -> str:
    return f"{number:040x}"


def look_at(number: int, skipped: tuple[str, ...] = ()) -> ObservedSource:
    return ObservedSource(GIT, "", "HEAD", sha(number), f"tree-{number}", "Subject", skipped=skipped)


def made(make, number, seconds, order=1, built=True, **more):
    """A Deployment of a commit, made so long ago."""
    spec = {"source": {"git": {"url": URL, "commit": sha(number)}}, "gitSha": sha(number), "attempt": 1}
    name = git_name("uid-demo", spec, 1)
    polled = {"crewyard.dev/polled": "true"} if more.pop("polled", True) else {}
    metadata = {"creationTimestamp": make.ago(seconds), "annotations": polled}
    return make.deployment(name, built=built, order=order, metadata=metadata, **spec, **more)


def project_at(make, number, order=1, **status):
    source = {"commit": sha(number), "tree": f"tree-{number}", "order": order}
    return make.project(source={"git": GIT}, status={"source": source, "lastOrder": order, **status})


def ready(decision) -> str:
    return conditions.find(decision.status["conditions"], "Ready")["message"]


@pytest.mark.parametrize(("age", "waits"), [(0, True), (9, True), (10, True), (11, False), (60, False)])
def test_head_waits_while_the_last_deployment_is_new(make, age, waits):
    project, deployments = project_at(make, 1), [made(make, 1, age)]
    decision = decide(project, deployments, look_at(2), NOW, TEN)
    assert bool(decision.create) is not waits
    assert (decision.requeue_after is not None) is waits
    assert ("Waiting a moment for further commits" in ready(decision)) is waits
    # It is not handled yet, so the next reconcile sees it as new too.
    assert not any("source" in patch.body["status"] for patch in decision.before)


def test_head_with_an_existing_image_does_not_wait(make):
    decision = decide(
        project_at(make, 1), [made(make, 1, 0)], look_at(2), NOW, CoalescingWindow(10.0, lambda create: True)
    )
    assert decision.create


def test_uploads_previews_and_reused_images_delay_no_head(make):
    reused = [{"type": "Built", "status": "True", "reason": "Reused", "message": ""}]
    deployments = [
        make.deployment("dep-upload", metadata={"creationTimestamp": make.ago(0)}),
        made(make, 5, 0, preview={"pullRequest": 1}),
        made(make, 6, 0, status={"conditions": reused}, built=False),
    ]
    assert decide(project_at(make, 1), deployments, look_at(2), NOW, TEN).create


def test_event_of_a_new_commit_says_that_it_is_built(make):
    [create] = decide(project_at(make, 1), [made(make, 1, 60)], look_at(2), NOW, TEN).create
    [event] = create.events
    assert (event.reason, event.message) == ("NewCommit", f"{sha(2)} is built as {create.name}.")


def test_event_and_condition_name_skipped_commits(make):
    looks = ObservedSources()
    looks.put("demo", look_at(1))
    looks.mark_deployed("demo", sha(1))
    # No reconcile is needed between them.
    for number in (2, 3, 4):
        looks.put("demo", look_at(number))
    look = looks.get("demo")
    assert look.skipped == (sha(2), sha(3))
    project = project_at(make, 1)
    decision = decide(project, [made(make, 1, 60)], look, NOW, TEN)
    assert decision.create
    (note,) = [note for note in decision.create[0].events if note.reason == "CommitsSkipped"]
    assert sha(2)[:12] in note.message and sha(3)[:12] in note.message and sha(4)[:12] in note.message
    looks.mark_deployed("demo", sha(4))
    after = project_at(make, 4, 2, conditions=decision.status["conditions"], observedGeneration=1)
    deployments = [made(make, 4, 5, order=2)]
    assert "Not built, since newer ones followed: " in ready(decision)
    again = decide(after, deployments, look, NOW, TEN)
    assert ready(again) == ready(decision)
    # Another controller remembers nothing, and leaves the sentence as it is.
    fresh = decide(after, deployments, replace(look, skipped=()), NOW, TEN)
    assert ready(fresh) == ready(decision)
    looks.put("demo", look_at(5))
    assert looks.get("demo").skipped == ()


def test_push_back_to_a_skipped_commit_deploys_it():
    looks = ObservedSources()
    for number in (2, 3, 2):
        looks.put("demo", look_at(number))
    assert looks.get("demo").skipped == (sha(3),)


def test_failed_poll_keeps_the_skipped_commits():
    looks = ObservedSources()
    looks.put("demo", look_at(1))
    looks.mark_deployed("demo", sha(1))
    looks.put("demo", look_at(2))
    away = ObservedSource(GIT, "", problem=SourceProblem("Unreachable", "away", True))
    looks.put("demo", away)
    looks.put("demo", look_at(3))
    assert looks.get("demo").skipped == (sha(2),)
    looks.put("demo", look_at(1))
    assert looks.get("demo").skipped == (sha(2), sha(3))
    looks.mark_deployed("demo", sha(1))
    looks.put("demo", look_at(4))
    assert looks.get("demo").skipped == ()


def test_queued_build_is_superseded_by_a_newer_head(make):
    project = project_at(make, 1, 1)
    waiting = {"built": False, "phase": "Pending"}
    deployments = [
        made(make, 1, 90, order=1, built=False, status={"buildPod": "pod"}),
        made(make, 2, 60, order=2, **waiting),
        made(make, 3, 30, order=0, **waiting),
    ]
    project = project_at(make, 2, 2)
    decision = decide(project, deployments, look_at(3), NOW, TEN)
    (end,) = [patch for patch in decision.after if patch.body["status"].get("phase") == "Failed"]
    assert end.name == deployments[1].name
    assert end.resource_version == deployments[1].resource_version
    assert end.body["status"]["error"]["reason"] == "Superseded"
    assert sha(3)[:12] in end.body["status"]["error"]["message"]
    assert [note.reason for note in end.events] == ["CommitsSkipped"]


def test_requested_uploaded_and_reusing_builds_are_not_superseded(make):
    same = [{"type": "Built", "status": "Unknown", "reason": "SameSourceBuilding", "message": ""}]
    waiting = {"built": False, "phase": "Pending"}
    deployments = [
        make.deployment("dep-upload", order=1, **waiting),
        made(make, 1, 90, order=9, **waiting),
        made(make, 2, 60, order=2, built=False, status={"conditions": same}),
        made(make, 4, 50, order=2, polled=False, **waiting),
        made(make, 3, 30, order=3, **waiting),
    ]
    decision = decide(project_at(make, 3, 3), deployments, look_at(3), NOW, TEN)
    assert not [patch for patch in decision.after if patch.body["status"].get("phase") == "Failed"]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.0, 10.0), min_size=20, max_size=20), st.floats(0.0, 1.0))
def test_twenty_pushes_in_ten_seconds_build_at_most_two(moments, offset):
    """For any build time, even zero, builds start at most twice."""
    make, pushes, clock = Make(), sorted(moments), 0.0
    project, looks, created = project_at(make, 1000), ObservedSources(), []
    while clock < 40.0:
        number = sum(at <= clock for at in pushes)
        if number:
            looks.put("demo", look_at(number))
            # The apiserver stamps whole seconds.
            ages = [made(make, n, int(clock + offset) - stamp, order=n) for n, stamp in created]
            now = NOW.replace(microsecond=int((clock + offset) % 1 * 1e6))
            decision = decide(project, ages, looks.get("demo"), now, TEN)
            if not decision.requeue_after:
                looks.mark_deployed("demo", sha(number))
            if decision.create:
                created.append((number, int(clock + offset)))
                project = project_at(make, number, number)
        clock += 0.25
    assert len(created) <= 2 and created[-1][0] == 20
