"""Pushes in quick succession: which heads wait, which are skipped, and how that is reported."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.project.activation import Orders
from controller.project.coalesce import NO_COALESCING, CoalescingWindow, supersede_patches
from controller.project.decide import decide
from controller.runtime.decision import Create, ObjectEvent, Patch
from controller.source.observed import ObservedSource, ObservedSources, SourceProblem
from crds import conditions, kinds
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
    metadata = {
        "creationTimestamp": make.ago(seconds),
        "annotations": polled,
        "generation": more.pop("generation", 1),
        **({"deletionTimestamp": make.ago(0)} if more.pop("deleted", False) else {}),
    }
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


def test_skipped_commits_are_named_without_an_earlier_refusal(make):
    look = replace(look_at(4), skipped=(sha(2), sha(3)))
    refused = decide(project_at(make, 1), [made(make, 1, 60)], look, NOW, TEN, refusal="quota")
    assert not refused.create and "quota" in ready(refused)
    after = project_at(make, 4, 2, conditions=refused.status["conditions"], observedGeneration=1)
    fresh = decide(after, [made(make, 4, 5, order=2)], replace(look, skipped=()), NOW, TEN)
    assert sha(3)[:12] in ready(fresh) and "quota" not in ready(fresh)


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


def superseded(deployment, head) -> Patch:
    """The patch of a Deployment whose build did not start before that of a newer head was ordered."""
    commit = head.spec["source"]["git"]["commit"]
    message = (
        f"Commit {commit[:12]} ({head.name}) followed before the build started; this commit is not built."
    )
    times = {"lastTransitionTime": "2026-11-21T12:00:00Z", "observedGeneration": 3}
    status = {
        "observedGeneration": 3,
        "phase": "Failed",
        "conditions": [
            {"type": type_, "status": status, "reason": "Superseded", "message": message, **times}
            for type_, status in (("Ready", "False"), ("Built", "False"), ("Stalled", "True"))
        ],
        "error": {
            "reason": "Superseded",
            "message": message,
            "hint": "The newer commit is deployed instead.",
        },
    }
    event = ObjectEvent("CommitsSkipped", f"{deployment.name}: {message}")
    version = deployment.resource_version
    return Patch(kinds.DEPLOYMENT, deployment.name, {"status": status}, version, events=(event,))


def test_queued_build_is_superseded_by_a_newer_head(make):
    waiting = {"built": False, "phase": "Pending"}
    deployments = [
        made(make, 1, 90, order=1, built=False, status={"buildPod": "pod"}),
        made(make, 2, 60, order=2, generation=3, **waiting),
        made(make, 3, 30, order=0, **waiting),
    ]
    decision = decide(project_at(make, 2, 2), deployments, look_at(3), NOW, TEN)
    assert decision.after == (superseded(deployments[1], deployments[2]),)


@pytest.mark.parametrize(
    ("waiting", "orders", "ends"),
    [
        pytest.param({"order": 1}, (0, 2), True, id="first order"),
        pytest.param({"order": 3}, (0, 4), True, id="later order"),
        pytest.param({"order": 1}, (5, 4), False, id="just rolled back to"),
        pytest.param({"order": 0}, (0, 4), False, id="without an order"),
        pytest.param({"order": 4}, (0, 4), False, id="same order"),
        pytest.param({"order": 1, "built": True}, (0, 4), False, id="built"),
        pytest.param({"order": 1, "phase": "Failed"}, (0, 4), False, id="failed"),
        pytest.param({"order": 1, "deleted": True}, (0, 4), False, id="being deleted"),
        pytest.param({"order": 1, "status": {"buildPod": "pod"}}, (0, 4), False, id="building"),
        pytest.param({"order": 1, "preview": {}}, (0, 4), False, id="preview"),
        pytest.param({"order": 1, "activation": 1}, (0, 4), False, id="rolled back to earlier"),
    ],
)
def test_only_a_queued_commit_with_an_older_order_is_superseded(make, waiting, orders, ends):
    # A posted Deployment may be without gitSha.
    head = make.deployment("dep-head", source={"git": {"url": URL, "commit": sha(9)}}, built=False)
    older = made(make, 1, 60, generation=3, **{"built": False, **waiting})
    assigned, of_head = orders
    found = Orders({"dep-head": of_head, **({older.name: assigned} if assigned else {})}, {}, 9)
    expected = [superseded(older, head)] if ends else []
    assert supersede_patches([older, head], head, sha(9), found, NOW) == expected


def test_upload_with_the_name_of_the_head_stops_no_reconcile(make):
    upload = make.deployment("dep-head", source={"archive": {"upload": "upl_1"}}, built=False)
    older = made(make, 1, 60, order=1, built=False)
    [patch] = supersede_patches([older, upload], upload, sha(9), Orders({"dep-head": 2}, {}, 2), NOW)
    assert "(dep-head) followed" in patch.body["status"]["error"]["message"]


@pytest.mark.parametrize(
    ("window", "ages", "seconds"),
    [
        (TEN, [60, 2, 30], 9.0),
        (TEN, [0], 11.0),
        (TEN, [-5], 16.0),
        # This clock is behind: a repeated wait would last until it passes the creation.
        (TEN, [-3600], 0.0),
        (TEN, [11], 0.0),
        (TEN, [12], 0.0),
        (TEN, [], 0.0),
        (CoalescingWindow(0.5), [1], 0.5),
        (NO_COALESCING, [0], 0.0),
        (CoalescingWindow(10.0, lambda create: create.name == "dep-new"), [2], 0.0),
        (CoalescingWindow(10.0, lambda create: create.name != "dep-new"), [2], 9.0),
    ],
)
def test_wait_lasts_from_the_newest_deployment_to_the_end_of_the_window(make, window, ages, seconds):
    deployments = [made(make, number, age) for number, age in enumerate(ages)]
    create = Create(kinds.DEPLOYMENT, {"metadata": {"name": "dep-new"}})
    assert window.wait(deployments, create, NOW) == seconds


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
