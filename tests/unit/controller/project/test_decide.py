"""Whole Decisions about a Project: what is written, in which order, with which precondition."""

import pytest

from controller import owner
from controller.project.coalesce import CoalescingWindow
from controller.project.decide import decide
from controller.project.phases import phase_patch
from controller.runtime.decision import Create, Decision, ObjectEvent, Patch
from controller.runtime.workqueue import ReconcileKey
from controller.source.observed import ObservedSource, SourceProblem
from crds import kinds
from crds.deployment_name import git_name
from tests.unit.controller.conftest import NOW

NOW_TEXT, EARLIER = "2026-11-21T12:00:00Z", "2026-11-21T10:00:00Z"
URL = "https://example.org/x.git"
ONE, TWO = "1" * 40, "2" * 40
TEN = CoalescingWindow(10.0)


def head(commit, tree="tree", requested_at="", **more):
    return ObservedSource({"url": URL}, requested_at, "main", commit, tree, "Subject", **more)


def following(make, status=None):
    """A Project that follows a repository."""
    return make.project(source={"git": {"url": URL}}, status=status)


def recorded(commit, tree="tree", **more):
    """`status.source` as it is stored."""
    return {"commit": commit, "tree": tree, **more}


def written(commit, tree="tree", **more):
    """`status.source` as it is written: None removes a field."""
    return {"commit": commit, "tree": tree, "path": None, "crew": None, **more}


def spec_of(commit):
    return {"source": {"git": {"url": URL, "commit": commit}}, "gitSha": commit, "message": "Subject"}


def deployment_of(make, commit, attempt=1, **more):
    name = git_name("uid-demo", spec_of(commit), attempt)
    return make.deployment(name, **spec_of(commit), attempt=attempt, **more)


def created(project, commit, attempt, *events, **annotations):
    name = git_name("uid-demo", spec_of(commit), attempt)
    metadata = {
        "name": name,
        "labels": {"crewyard.dev/project": "demo"},
        "annotations": {"crewyard.dev/polled": "true", **annotations},
        "ownerReferences": [owner.reference(kinds.PROJECT, project)],
    }
    spec = {"project": "demo", **spec_of(commit), "attempt": attempt}
    first = ObjectEvent("NewCommit", f"{commit} is built as {name}.")
    return Create(kinds.DEPLOYMENT, {"metadata": metadata, "spec": spec}, (first, *events))


def ready(message, reason="Resolved", types=("Ready", "SourceResolved")):
    """The status of a Project whose conditions are new."""
    common = {"status": "True", "reason": reason, "message": message}
    times = {"lastTransitionTime": NOW_TEXT, "observedGeneration": 1}
    conditions = [{"type": type_, **common, **times} for type_ in types]
    return {"observedGeneration": 1, "conditions": conditions}


def without_source():
    return ready("No git source; deployments are uploaded.", "NoSource", ("Ready",))


def test_new_head_creates_its_deployment_and_reconciles_again(make):
    project, skipped = following(make), ("a" * 40, "b" * 40)
    event = ObjectEvent("CommitsSkipped", f"{'a' * 12}, {'b' * 12}: not built, superseded by {'1' * 12}.")
    skips = f"Not built, since newer ones followed: {'a' * 12}, {'b' * 12}."
    assert decide(project, [], head(ONE, skipped=skipped), NOW) == Decision(
        create=(created(project, ONE, 1, event),),
        status=ready(f"main is at {ONE}. {skips}"),
        enqueue=(ReconcileKey("projects", "demo"),),
    )


def test_built_head_is_ordered_recorded_and_activated(make):
    status = {"lastOrder": 6, "activeDeployment": "dep-a", "source": recorded(ONE, "tree-1", order=6)}
    project = following(make, status)
    before = make.deployment("dep-a", order=6, phase="Active")
    built = deployment_of(make, TWO)
    source = {"commit": TWO, "tree": "tree-2", "order": 7}
    assert decide(project, [before, built], head(TWO, "tree-2"), NOW) == Decision(
        before=(
            Patch(
                kinds.PROJECT,
                "demo",
                {"status": {"lastOrder": 7, "source": source}},
                project.resource_version,
            ),
            Patch(kinds.DEPLOYMENT, built.name, {"status": {"order": 7}}, built.resource_version),
        ),
        status={"activeDeployment": built.name, "activatedAt": NOW_TEXT, **ready(f"main is at {TWO}.")},
        events=(ObjectEvent("Activated", f"{built.name} is the active deployment, replacing dep-a."),),
        after=(
            *phase_patch(before, built.name, NOW_TEXT, NOW),
            *owner.adoption(kinds.DEPLOYMENT, before, project),
            *phase_patch(built, built.name, NOW_TEXT, NOW),
            *owner.adoption(kinds.DEPLOYMENT, built, project),
        ),
    )


def test_rollback_is_ordered_and_counted_as_seen(make):
    project = make.project(status={"lastOrder": 2, "activeDeployment": "dep-b"})
    target, other = make.deployment(order=1, activation=3), make.deployment("dep-b", order=2)
    version = target.resource_version
    assert decide(project, [target, other], None, NOW) == Decision(
        before=(
            Patch(kinds.PROJECT, "demo", {"status": {"lastOrder": 3}}, project.resource_version),
            Patch(kinds.DEPLOYMENT, "dep-a", {"status": {"order": 3, "activationSeen": 3}}, version),
        ),
        status={"activeDeployment": "dep-a", "activatedAt": NOW_TEXT, **without_source()},
        events=(ObjectEvent("Activated", "dep-a is the active deployment, replacing dep-b (rollback)."),),
        after=(
            *phase_patch(target, "dep-a", NOW_TEXT, NOW),
            *owner.adoption(kinds.DEPLOYMENT, target, project),
            *phase_patch(other, "dep-a", NOW_TEXT, NOW),
            *owner.adoption(kinds.DEPLOYMENT, other, project),
        ),
    )


def test_phase_written_late_has_the_time_of_the_activation(make):
    """The controller stopped between the Project's status and the Deployment's phase."""
    status = {"lastOrder": 1, "activeDeployment": "dep-a", "activatedAt": EARLIER}
    project, active = make.project(status=status), make.deployment(order=1)
    decision = decide(project, [active], None, NOW)
    assert decision == Decision(
        status=without_source(),
        after=(
            *phase_patch(active, "dep-a", EARLIER, NOW),
            *owner.adoption(kinds.DEPLOYMENT, active, project),
        ),
    )
    assert decision.after[0].body["status"]["activatedAt"] == EARLIER


def test_deletion_of_the_last_deployment_is_a_warning(make):
    project = make.project(status={"activeDeployment": "dep-a", "activatedAt": EARLIER})
    assert decide(project, [], None, NOW) == Decision(
        status={"activeDeployment": None, "activatedAt": None, **without_source()},
        events=(ObjectEvent("Deactivated", "dep-a was deleted; no deployment is active.", True),),
    )


def test_observation_of_another_source_is_ignored(make):
    project = following(make)
    other = ObservedSource({"url": "https://example.org/other.git"}, "", "main", ONE, "tree", "Subject")
    assert decide(project, [], other, NOW) == decide(project, [], None, NOW) == Decision(status={})


def test_failed_poll_changes_only_conditions(make):
    away = ObservedSource({"url": URL}, "", problem=SourceProblem("Unreachable", "timed out", True))
    decision = decide(following(make), [], away, NOW)
    assert decision == Decision(
        status={"observedGeneration": 1, "conditions": decision.status["conditions"]},
        events=(ObjectEvent("Unreachable", "timed out", True),),
    )


@pytest.mark.parametrize("commit", [ONE, TWO], ids=["its deployment was deleted", "commit outside path"])
def test_head_without_a_deployment_has_no_order(make, commit):
    status = {"lastOrder": 2, "activeDeployment": "dep-a", "source": recorded(ONE, order=2)}
    active = make.deployment(order=1, phase="Active")
    decision = decide(following(make, status), [active], head(commit), NOW)
    assert decision.status == {"source": written(commit, order=None), **ready(f"main is at {commit}.")}
    assert decision.create == decision.before == ()


def test_head_that_gets_a_deployment_later_is_recorded_with_its_order(make):
    """A user posted it: the commit is outside `path`, so the head did not move."""
    project = following(make, {"lastOrder": 1, "source": recorded(ONE, order=1)})
    posted = deployment_of(make, TWO, built=False)
    assert decide(project, [posted], head(TWO), NOW) == Decision(
        before=(
            Patch(
                kinds.PROJECT,
                "demo",
                {"status": {"lastOrder": 2, "source": {"commit": TWO, "order": 2}}},
                project.resource_version,
            ),
            Patch(kinds.DEPLOYMENT, posted.name, {"status": {"order": 2}}, posted.resource_version),
        ),
        status=ready(f"main is at {TWO}."),
    )


def test_head_whose_deployment_failed_at_once_is_recorded_without_an_order(make):
    project, failed = following(make), deployment_of(make, ONE, built=False, phase="Failed")
    assert decide(project, [failed], head(ONE), NOW) == Decision(
        before=(
            Patch(
                kinds.PROJECT,
                "demo",
                {"status": {"source": written(ONE, order=None)}},
                project.resource_version,
            ),
        ),
        status=ready(f"main is at {ONE}."),
        after=owner.adoption(kinds.DEPLOYMENT, failed, project),
    )


def test_requested_retry_of_a_failed_head_waits_for_no_other_commits(make):
    status = {"lastOrder": 1, "source": recorded(ONE, order=1)}
    created_now = {"metadata": {"creationTimestamp": make.ago(1)}}
    project = following(make, status)
    failed = deployment_of(make, ONE, built=False, phase="Failed", order=1, **created_now)
    again = created(project, ONE, 2, **{"crewyard.dev/requestedAt": NOW_TEXT})
    assert decide(project, [failed], head(ONE, requested_at=NOW_TEXT), NOW, TEN) == Decision(
        create=(again,),
        status=ready(f"main is at {ONE}."),
        after=owner.adoption(kinds.DEPLOYMENT, failed, project),
        enqueue=(ReconcileKey("projects", "demo"),),
    )


@pytest.mark.parametrize("built_before", [TWO, "3" * 40])
def test_only_a_head_whose_own_image_exists_waits_for_no_other_commits(make, built_before):
    project = following(make, {"lastOrder": 1, "source": recorded(ONE, "tree-1", order=1)})
    building = deployment_of(make, ONE, built=False, order=1, metadata={"creationTimestamp": make.ago(1)})
    window = CoalescingWindow(10.0, lambda create: create.body["spec"]["gitSha"] == built_before)
    waiting = f"main is at {TWO}. Waiting a moment for further commits before deploying it."
    assert decide(project, [building], head(TWO, "tree-2"), NOW, window) == (
        Decision(
            create=(created(project, TWO, 1),),
            status=ready(f"main is at {TWO}."),
            enqueue=(ReconcileKey("projects", "demo"),),
        )
        if built_before == TWO
        else Decision(status=ready(waiting), requeue_after=10.0)
    )


@pytest.mark.parametrize("phase", ["Pending", "Failed"])
def test_waiting_build_is_superseded_unless_the_head_failed(make, phase):
    project = following(make, {"lastOrder": 2, "source": recorded(TWO, order=2)})
    polled = {"metadata": {"annotations": {"crewyard.dev/polled": "true"}}}
    waiting = deployment_of(make, ONE, built=False, phase="Pending", order=1, **polled)
    newest = deployment_of(make, TWO, built=False, phase=phase, order=2)
    decision = decide(project, [waiting, newest], head(TWO), NOW)
    ended = [patch.name for patch in decision.after if patch.body.get("status", {}).get("phase") == "Failed"]
    assert ended == ([waiting.name] if phase == "Pending" else [])


def test_use_of_dependency_images_is_recorded_by_day(make):
    built = make.deployment(order=1, phase="Active", status={"dependenciesKey": "ab12"})
    built.raw["status"]["conditions"][0]["lastTransitionTime"] = EARLIER
    project = make.project(status={"lastOrder": 1, "activeDeployment": "dep-a"})
    assert decide(project, [built], None, NOW).status == {
        "dependencies": [{"key": "ab12", "usedAt": "2026-11-21T00:00:00Z"}],
        **without_source(),
    }
