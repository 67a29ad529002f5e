"""To which nodes the image of a new active Deployment is pulled, and when the pods are deleted."""

from dataclasses import replace

import pytest

from controller.config import parse
from controller.pods.placement import NodePlacement, NodePlacements
from controller.pull_ahead.decide import FAILED_EVENT, ObservedNodes, decide, is_due, is_new_node, refused
from controller.pull_ahead.pod import build, node_of
from controller.run import pod as run_pod
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT
from tests.unit.controller.test_config import GOOD

SCHEDULED = [{"type": "PodScheduled", "status": "True"}]
NO_PLACE = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are free"}
]
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


@pytest.fixture
def on(config):
    return replace(config, pull_ahead=True)


@pytest.fixture
def project(make):
    """Return a function that makes a Project whose dep-b was activated five seconds ago."""

    def build(nodes=("node-1",), handled=None, ago=5, active="dep-b"):
        record = {"nodes": list(nodes)} | ({"activatedAt": handled} if handled else {})
        status = {"activeDeployment": active, "activatedAt": make.ago(ago)}
        return make.project(status=status | ({"pullAhead": record} if nodes or handled else {}))

    return build


@pytest.fixture
def run_on(make):
    """Return a function that makes the pod of a run."""

    def build(node, deployment="dep-a", age=60):
        labels = {LABEL_PROJECT: "demo", LABEL_DEPLOYMENT: deployment}
        meta = {"labels": labels, "creationTimestamp": make.ago(age)}
        return make.pod(f"run-{node}", metadata=meta, spec={"nodeName": node} if node else {})

    return build


@pytest.fixture
def pulling(make, on, project):
    """Return a function that makes a pull pod, of dep-b if not said otherwise."""

    def made(node, deployment="dep-b", age=2, **status):
        body = build(project(), make.deployment(deployment), node, on)
        meta = {**body["metadata"], "creationTimestamp": make.ago(age)}
        return make.pod(meta["name"], metadata=meta, spec=body["spec"], **{"phase": "Pending", **status})

    return made


@pytest.fixture
def look(make, on):
    def look(project, run_pods=(), pods=(), config=on, active="dep-b"):
        built = make.deployment(active) if active else None
        return decide(ObservedNodes(project, built, run_pods, pods), make.now, config)

    return look


def created(decision):
    return [child.body["metadata"]["annotations"]["crewyard.dev/node"] for child in decision.create]


def deleted(decision):
    return [child.name for child in decision.delete]


def messages(decision):
    return [event.message for child in decision.delete for event in child.events]


def test_each_known_node_gets_one_pod_of_the_new_deployment(look, project, run_on, make):
    runs = [run_on("node-2", age=60), run_on("node-3", age=30), run_on("")]
    decision = look(project(), runs)
    assert created(decision) == ["node-3", "node-2", "node-1"]
    owners = [child.body["metadata"]["ownerReferences"] for child in decision.create]
    assert {(owner["kind"], owner["uid"]) for (owner,) in owners} == {("Deployment", "uid-dep-b")}
    record = {"nodes": ["node-3", "node-2", "node-1"], "activatedAt": make.ago(5)}
    assert decision.status == {"pullAhead": record}
    assert decision.requeue_after == 60


def test_an_activation_is_handled_once(look, project, make):
    decision = look(project(handled=make.ago(5)))
    assert (decision.create, decision.status) == ((), {"pullAhead": {"nodes": ["node-1"]}})
    # A rollback is another one.
    assert created(look(project(handled=make.ago(50)))) == ["node-1"]


def test_at_most_ten_nodes_are_kept_the_newest_first(look, project, run_on):
    decision = look(project([f"old-{n}" for n in range(10)]), [run_on("new")])
    assert created(decision) == ["new", *(f"old-{n}" for n in range(9))]


def test_a_node_that_has_a_pod_of_the_deployment_gets_none(look, project, run_on, pulling):
    """After a crash before the record, or where the smoke run was."""
    runs = [run_on("node-2", deployment="dep-b")]
    decision = look(project(["node-1", "node-2", "node-3"]), runs, [pulling("node-1")])
    assert created(decision) == ["node-3"]


@pytest.mark.parametrize(
    ("change", "setting"),
    [({"ago": 600}, True), ({"nodes": ()}, True), ({"active": None}, True), ({}, False)],
)
def test_nothing_is_pulled_for_another_state(look, project, on, make, change, setting):
    config = replace(on, pull_ahead=setting)
    assert not is_due(project(**change), make.now, config)
    decision = look(project(**change), config=config)
    assert (decision.create, decision.requeue_after) == ((), None)
    assert is_due(project(), make.now, on)


def test_an_image_that_may_not_run_yet_is_looked_at_again(look, project):
    decision = look(project(), active=None)
    assert (decision.create, decision.requeue_after) == ((), 10)
    assert "activatedAt" not in decision.status["pullAhead"]


def test_the_first_nodes_end_what_is_due(look, project, run_on, make):
    """What is active was activated before any node was known, and runs there."""
    decision = look(project(()), [run_on("node-1", deployment="dep-b")])
    record = {"nodes": ["node-1"], "activatedAt": make.ago(5)}
    assert (decision.create, decision.status) == ((), {"pullAhead": record})
    assert look(project(())).status is None


def test_a_full_list_changes_only_at_an_activation(look, project, run_on, make):
    nodes = [f"node-{n}" for n in range(10)]
    full = project(nodes, handled=make.ago(5))
    assert look(full, [run_on("new"), run_on("node-5", age=1)]).status == {"pullAhead": {"nodes": nodes}}
    assert not is_new_node(full, "new")
    nine = project(nodes[:9], handled=make.ago(5))
    assert look(nine, [run_on("new"), run_on("node-5", age=1)]).status["pullAhead"]["nodes"] == [
        "new",
        *nodes[:9],
    ]
    assert [is_new_node(nine, node) for node in ("new", "node-5", "")] == [True, False, False]


@pytest.fixture
def handled(project, make):
    return project(["node-1", "node-2"], handled=make.ago(5))


def test_a_pod_is_deleted_as_soon_as_it_ended(look, handled, pulling, make):
    done = pulling("node-1", phase="Succeeded", containerStatuses=make.ended("pull"))
    running = pulling("node-2", age=10, phase="Running", conditions=SCHEDULED)
    decision = look(handled, pods=[done, running])
    assert (deleted(decision), messages(decision)) == ([done.name], [])
    assert decision.requeue_after == 590
    assert decision.status == {"pullAhead": {"nodes": ["node-1", "node-2"]}}


def test_a_failed_pod_is_deleted_with_an_event(look, handled, pulling):
    failed = pulling("node-1", phase="Failed", reason="DeadlineExceeded", message="active too long")
    decision = look(handled, pods=[failed])
    assert deleted(decision) == [failed.name]
    assert messages(decision) == ["The image of dep-b was not pulled ahead to node node-1: active too long"]
    assert decision.delete[0].events[0].reason == FAILED_EVENT
    # Its node stays: it had room.
    assert decision.status["pullAhead"]["nodes"] == ["node-1", "node-2"]


def test_a_node_without_a_place_is_forgotten(look, handled, pulling, project, make):
    decision = look(handled, pods=[pulling("node-1", age=60, conditions=NO_PLACE)])
    assert len(decision.delete) == 1 and "0/3 nodes are free" in messages(decision)[0]
    assert decision.status["pullAhead"]["nodes"] == ["node-2"]
    only = project(["node-1"], handled=make.ago(70))
    gone = look(only, pods=[pulling("node-1", age=60, conditions=NO_PLACE)], active=None)
    assert gone.status == {"pullAhead": {"nodes": []}}
    early = look(handled, pods=[pulling("node-1", age=59, conditions=NO_PLACE)])
    assert (early.delete, early.requeue_after) == ((), 1)
    assert early.status["pullAhead"]["nodes"] == ["node-1", "node-2"]


def test_a_pod_that_waits_for_a_queue_forgets_no_node(look, handled, pulling):
    decision = look(handled, pods=[pulling("node-1", age=60, conditions=GATED)])
    assert len(decision.delete) == 1
    assert decision.status["pullAhead"]["nodes"] == ["node-1", "node-2"]


def test_a_pod_is_deleted_after_its_bound(look, handled, pulling):
    slow = {"conditions": SCHEDULED}
    assert look(handled, pods=[pulling("node-1", age=599, **slow)]).delete == ()
    decision = look(handled, pods=[pulling("node-1", age=600, **slow)])
    assert len(decision.delete) == 1 and "did not end in 600 s" in messages(decision)[0]


@pytest.mark.parametrize("phase", ["Pending", "Failed"])
def test_a_pod_of_an_earlier_deployment_is_deleted(look, handled, pulling, phase):
    decision = look(handled, pods=[pulling("node-1", deployment="dep-a", phase=phase)])
    assert (len(decision.delete), messages(decision)) == (1, [])


def test_pods_are_deleted_where_the_setting_is_off(look, handled, pulling, config):
    decision = look(handled, pods=[pulling("node-1", phase="Succeeded")], config=config)
    assert len(decision.delete) == 1


def test_a_pod_that_is_being_deleted_is_left_alone(look, handled, pulling, make):
    gone = pulling("node-1", phase="Succeeded")
    gone.raw["metadata"]["deletionTimestamp"] = make.ago(1)
    assert look(handled, pods=[gone]).delete == ()


def test_a_refusal_is_one_event_and_the_record_stays(look, project, make):
    decision = refused(look(project()), "exceeded quota: pods")
    assert (decision.create, [event.reason for event in decision.events]) == ((), [FAILED_EVENT])
    assert "exceeded quota: pods" in decision.events[0].message
    assert decision.status["pullAhead"]["activatedAt"] == make.ago(5)


def test_the_pod_is_restricted_and_executes_nothing_of_the_crew(make, config):
    deployment = make.deployment()
    body = build(make.project(), deployment, "node-1", config)
    spec, (container,) = body["spec"], body["spec"]["containers"]
    run = run_pod.build(make.run(), make.project(), deployment, frozenset(), config, 0)["spec"]
    assert spec["securityContext"] == run["securityContext"]
    assert container["securityContext"] == run["containers"][0]["securityContext"]
    assert (spec["automountServiceAccountToken"], spec["restartPolicy"]) == (False, "Never")
    assert (container["image"], spec["activeDeadlineSeconds"]) == (deployment.image, 600)
    assert container["command"] == ["python3", "-I", "-S", "-c", "pass"]
    assert not {"env", "envFrom", "volumeMounts"} & set(container)
    assert "nodeName" not in spec
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def test_the_pod_goes_where_runs_go_and_takes_no_place(make, config):
    place = NodePlacement(
        {"pool": "runs"}, ({"key": "runs"},), ({"name": "pull"},), "gvisor", priority_class="high"
    )
    placed = replace(config, placements=NodePlacements(run=replace(place, labels={"queue": "crews"})))
    body = build(make.project(), make.deployment(), "node-1", placed)
    spec = body["spec"]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "runs"}, [{"key": "runs"}])
    assert (spec["imagePullSecrets"], spec["runtimeClassName"]) == ([{"name": "pull"}], "gvisor")
    assert body["metadata"]["labels"]["queue"] == "crews"
    assert "priorityClassName" not in spec


def test_the_name_follows_from_deployment_and_node(make, pulling):
    found = {pulling(node, deployment).name for node in ("a", "b") for deployment in ("dep-a", "dep-b")}
    assert len(found) == 4 and pulling("a").name == pulling("a").name
    assert node_of(pulling("a")) == "a"


def test_the_setting_is_off_unless_it_is_on():
    assert not parse(GOOD).pull_ahead
    assert parse({**GOOD, "CREWYARD_PULL_AHEAD": "on"}).pull_ahead
