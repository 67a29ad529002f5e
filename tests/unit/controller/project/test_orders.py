"""Whole orders: which Deployments get one, in which sequence, and which built one is active."""

import pytest

from controller.project.activation import Orders, active_deployment, assign_orders
from controller.project.revision import NO_HEAD, Revision
from crds.deployment_name import git_name

URL = "https://example.org/x.git"
COMMIT = "c" * 40


def seconds_old(make, seconds, **more):
    return {"creationTimestamp": make.ago(seconds), **more}


def deleted(make, seconds):
    return seconds_old(make, seconds, deletionTimestamp=make.ago(0))


def following(make, last_order=0, order=None, **status):
    """A Project that follows a repository, at its recorded head."""
    source = {"commit": COMMIT, "tree": "t", **({"order": order} if order else {})}
    return make.project(
        source={"git": {"url": URL}}, status={"lastOrder": last_order, "source": source, **status}
    )


def at_commit(make, commit=COMMIT, attempt=1, seconds=60, metadata=None, **more):
    spec = {"source": {"git": {"url": URL, "commit": commit}}, "attempt": attempt}
    metadata = seconds_old(make, seconds, **(metadata or {}))
    return make.deployment(git_name("uid-demo", spec, attempt), metadata=metadata, **spec, **more)


def test_new_deployments_of_a_project_without_git_are_ordered_by_creation(make):
    commit = {"git": {"url": URL, "commit": COMMIT}}
    deployments = [
        make.deployment("dep-new", metadata=seconds_old(make, 10)),
        make.deployment("dep-old", metadata=seconds_old(make, 20), source=commit),
        make.deployment("dep-ordered", order=4, metadata=seconds_old(make, 60)),
        make.deployment("dep-preview", preview={}, metadata=seconds_old(make, 50)),
        make.deployment("dep-failed", phase="Failed", metadata=seconds_old(make, 40)),
        make.deployment("dep-deleted", metadata=deleted(make, 30)),
    ]
    project = make.project(status={"lastOrder": 5})
    assert assign_orders(project, deployments, NO_HEAD) == Orders({"dep-old": 6, "dep-new": 7}, {}, 7)
    # It is also greater than that of a Deployment of an earlier Project.
    assert assign_orders(make.project(), deployments, NO_HEAD).assigned == {"dep-old": 5, "dep-new": 6}
    assert assign_orders(make.project(), [], NO_HEAD) == Orders({}, {}, 0)


def test_superseded_commit_gets_no_order_when_git_is_removed(make):
    built, active = at_commit(make, phase="Superseded"), make.deployment(order=5, phase="Active")
    project = make.project(status={"lastOrder": 5, "activeDeployment": "dep-a"})
    assert assign_orders(project, [built, active], NO_HEAD) == Orders({}, {}, 5)
    # A rollback to it still gives it one.
    requested = at_commit(make, phase="Superseded", activation=1)
    assert assign_orders(project, [requested, active], NO_HEAD).assigned == {requested.name: 6}


def test_new_commits_are_ordered_only_at_the_head_and_uploads_always(make):
    head, upload = at_commit(make, seconds=20), make.deployment(metadata=seconds_old(make, 10))
    others = [at_commit(make, digit * 40, seconds=seconds) for digit, seconds in (("1", 30), ("2", 5))]
    deployments, project = [head, upload, *others], following(make)
    uids = frozenset(one.uid for one in others)
    assert assign_orders(project, deployments, Revision(deployment=head)) == Orders(
        {head.name: 1, "dep-a": 2}, {}, 2, uids
    )
    assert assign_orders(project, deployments, NO_HEAD) == Orders({"dep-a": 1}, {}, 1, uids | {head.uid})


@pytest.mark.parametrize(
    ("moved", "head", "ordered"),
    [
        pytest.param(True, {"order": 1}, True, id="returned"),
        pytest.param(False, {"order": 1}, False, id="did not move"),
        pytest.param(True, {"order": 1, "phase": "Failed"}, False, id="failed"),
        pytest.param(True, {"order": 3}, False, id="greatest already"),
        pytest.param(True, {}, True, id="new"),
        pytest.param(True, {"phase": "Failed"}, False, id="failed before it got an order"),
    ],
)
def test_moved_head_gets_the_greatest_order(make, moved, head, ordered):
    head, other = at_commit(make, **head), make.deployment(order=2)
    found = assign_orders(following(make, 3), [head, other], Revision(deployment=head, moved=moved))
    assert found == (Orders({head.name: 4}, {}, 4) if ordered else Orders({}, {}, 3))


def rollbacks(make, active="dep-b"):
    return make.project(status={"lastOrder": 2, "activeDeployment": active})


@pytest.mark.parametrize(
    ("target", "orders", "seen"),
    [
        pytest.param({"activation": 2}, {"dep-a": 3}, {"dep-a": 2}, id="first"),
        pytest.param(
            {"activation": 2, "status": {"activationSeen": 1}}, {"dep-a": 3}, {"dep-a": 2}, id="again"
        ),
        pytest.param({"activation": 2, "status": {"activationSeen": 2}}, {}, {}, id="handled"),
        pytest.param({"activation": 1, "phase": "Failed"}, {}, {}, id="failed"),
        pytest.param({"activation": 1, "metadata": "deleted"}, {}, {}, id="deleted"),
        pytest.param({"activation": 1, "order": 0, "preview": {}}, {}, {"dep-a": 1}, id="preview"),
    ],
)
def test_requested_rollback_is_ordered_once(make, target, orders, seen):
    metadata = deleted(make, 60) if "metadata" in target else seconds_old(make, 60)
    older = make.deployment(**{"order": 1, **target, "metadata": metadata})
    active = make.deployment("dep-b", order=2, metadata=seconds_old(make, 50))
    assert assign_orders(rollbacks(make), [active, older], NO_HEAD) == Orders(orders, seen, 2 + len(orders))
    # A later one is ordered after it.
    last = make.deployment("dep-0", order=1, activation=1, metadata=seconds_old(make, 40))
    assert assign_orders(rollbacks(make), [last, active, older], NO_HEAD) == Orders(
        {**orders, "dep-0": 3 + len(orders)}, {**seen, "dep-0": 1}, 3 + len(orders)
    )


@pytest.mark.parametrize(
    ("active", "order", "others", "orders"),
    [
        pytest.param("dep-a", 1, [], {}, id="active, first"),
        pytest.param("dep-a", 2, [("dep-b", 1)], {}, id="active, greatest"),
        pytest.param("dep-b", 2, [("dep-b", 1)], {"dep-a": 3}, id="greatest, not active yet"),
        pytest.param("dep-a", 1, [("dep-b", 2)], {"dep-a": 3}, id="active, a newer one is built"),
        pytest.param("dep-a", 2, [("dep-b", 0)], {"dep-b": 3, "dep-a": 4}, id="active, a new one"),
        pytest.param("dep-b", 0, [("dep-b", 0)], {"dep-b": 3, "dep-a": 4}, id="two new ones"),
    ],
)
def test_rollback_to_the_newest_active_deployment_changes_no_order(make, active, order, others, orders):
    requested = make.deployment(order=order, activation=1)
    deployments = [requested, *(make.deployment(name, order=order) for name, order in others)]
    found = assign_orders(rollbacks(make, active), deployments, NO_HEAD)
    assert found == Orders(orders, {"dep-a": 1}, max(2, *orders.values(), 0))


def test_deployment_made_again_with_the_active_name_is_ordered_on_rollback(make):
    again = at_commit(make, "1" * 40, activation=1)
    project = following(make, 2, activeDeployment=again.name)
    assert assign_orders(project, [again], NO_HEAD) == Orders(
        {again.name: 3}, {again.name: 1}, 3, frozenset({again.uid})
    )


def test_order_that_a_crash_left_unwritten_is_the_recorded_one(make):
    head, project = at_commit(make, seconds=60), following(make, 5, order=5, activeDeployment="dep-a")
    active = make.deployment(order=4, activation=1, metadata=seconds_old(make, 90))
    new = make.deployment("dep-new", metadata=seconds_old(make, 10))
    assert assign_orders(project, [head], Revision(deployment=head)) == Orders({head.name: 5}, {}, 5)
    # A rollback made since keeps a greater order, also one to the active Deployment.
    assert assign_orders(project, [head, active], NO_HEAD) == Orders(
        {head.name: 5, "dep-a": 6}, {"dep-a": 1}, 6
    )
    assert assign_orders(project, [head, new], NO_HEAD) == Orders({head.name: 5, "dep-new": 6}, {}, 6)
    earlier = at_commit(make, phase="Failed", order=2)
    second = at_commit(make, attempt=2)
    assert assign_orders(project, [second, earlier], NO_HEAD).assigned == {second.name: 5}


@pytest.mark.parametrize(
    ("head", "recorded"),
    [
        pytest.param({"order": 5}, 5, id="written"),
        pytest.param({"order": 6}, 5, id="rolled back to since"),
        pytest.param({"phase": "Failed"}, 5, id="failed"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}}, 5, id="deleted"),
        pytest.param({"order": 5, "earlier": True}, 5, id="written to the attempt before"),
        pytest.param({}, None, id="none recorded"),
    ],
)
def test_recorded_order_is_left_to_its_deployment(make, head, recorded):
    deployments = [at_commit(make, **{key: value for key, value in head.items() if key != "earlier"})]
    if "earlier" in head:
        deployments.append(at_commit(make, attempt=2))
    found = assign_orders(following(make, 6, order=recorded), deployments, NO_HEAD)
    waiting = {one.uid for one in deployments if not (one.order or one.failed or one.deleting)}
    assert found == Orders({}, {}, 6, frozenset(waiting))


def test_built_deployment_with_the_greatest_order_is_active(make):
    first, second, third = (make.deployment(f"dep-{order}", order=order) for order in (1, 2, 3))
    others = [
        make.deployment("dep-building", order=9, built=False),
        make.deployment("dep-preview", order=9, preview={}),
        make.deployment("dep-deleted", order=9, metadata=deleted(make, 60)),
        make.deployment("dep-posted"),
    ]
    deployments = [first, third, second, *others]
    assert active_deployment(deployments, Orders({}, {}, 9)) == third
    assert active_deployment(deployments, Orders({"dep-1": 10, "dep-building": 11}, {}, 11)) == first
    assert active_deployment([first, *others], Orders({}, {}, 9)) == first
    assert active_deployment(others, Orders({}, {}, 9)) is None
