"""Reconcile of a Project where the apiserver refuses its NetworkPolicy, or its head is being deleted."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.images.decide import PruneRefusals
from controller.images.deleted_project import MAX_REFUSED_PODS
from controller.images.reconcile import ImageCollector
from controller.owner import adoption, reference
from controller.pods.run_egress import EgressTarget
from controller.project import revision
from controller.project.reconcile import ProjectReconciler
from controller.runtime import event_map
from controller.runtime.errors import Retry
from controller.source.observed import ObservedSource, ObservedSources
from crds import kinds, names
from crds.conditions import find
from crds.deployment_name import git_name
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans
from crds.objects import Object
from crds.secrets.use import SecretUse
from kube import errors
from tests.unit.controller.memory_kube import ReconcilerTestbed


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("create", errors.Invalid(422, "Invalid", "Invalid for a test")),
        ("create", errors.KubeForbidden(403, "Forbidden", "Forbidden for a test")),
        ("get", errors.KubeForbidden(403, "Forbidden", "Forbidden for a test")),
    ],
)
async def test_a_refused_policy_stops_no_activation(make, config, verb, error):
    testbed = ReconcilerTestbed()
    testbed.show(kinds.PROJECT, make.project(run={"egress": [{"namespace": "tools"}]}))
    testbed.show(kinds.DEPLOYMENT, make.deployment())
    testbed.kube.refused[verb, kinds.NETWORK_POLICY] = error
    settings = replace(config, run_egress=(EgressTarget("tools"),))
    images = ImageCollector(testbed.applier, settings)
    reconciler = ProjectReconciler(testbed.applier, settings, ObservedSources(), images, lambda *_: None)
    # The worker logs it and tries again later: a corrected role changes no Project.
    with pytest.raises(type(error)):
        await reconciler.reconcile("demo")
    status = testbed.kube.objects["projects", "demo"]["status"]
    assert status["activeDeployment"] == "dep-a"
    limited = find(status["conditions"], "Limited")
    assert (limited["status"], limited["reason"]) == ("True", "EgressRefused")
    assert error.message in limited["message"]


async def test_a_policy_of_another_owner_stops_no_activation(make, config):
    testbed = ReconcilerTestbed()
    testbed.show(kinds.PROJECT, make.project(run={"egress": [{"namespace": "tools"}]}))
    testbed.show(kinds.DEPLOYMENT, make.deployment())
    foreign = {"metadata": {"name": "crewyard-egress-demo", "uid": "u"}, "spec": {}}
    testbed.kube.put(kinds.NETWORK_POLICY, Object(foreign))
    settings = replace(config, run_egress=(EgressTarget("tools"),))
    images = ImageCollector(testbed.applier, settings)
    reconciler = ProjectReconciler(testbed.applier, settings, ObservedSources(), images, lambda *_: None)
    # The worker tries again: the deletion of the policy changes no Project.
    with pytest.raises(Retry):
        await reconciler.reconcile("demo")
    status = testbed.kube.objects["projects", "demo"]["status"]
    assert status["activeDeployment"] == "dep-a"
    limited = find(status["conditions"], "Limited")
    assert (limited["status"], limited["reason"]) == ("True", "EgressRefused")
    assert "NetworkPolicy crewyard-egress-demo belongs to another object" in limited["message"]


@pytest.mark.parametrize("needed", [True, False])
async def test_a_deleted_policy_is_created_again(make, config, needed):
    testbed, reconciler = reconciled(replace(config, run_egress=(EgressTarget("tools"),)))
    testbed.show(kinds.PROJECT, make.project(run={"egress": [{"namespace": "tools"}]} if needed else {}))
    # The first one writes conditions, which enqueues the Project.
    await reconciler.reconcile("demo")
    await testbed.queued()
    await reconciler.reconcile("demo")
    # NetworkPolicies have no watch: the Project is reconciled again after a while.
    assert testbed.queues.main.scheduled == (1 if needed else 0)
    testbed.kube.objects.pop(("networkpolicies", "crewyard-egress-demo"), None)
    await reconciler.reconcile("demo")
    assert (("networkpolicies", "crewyard-egress-demo") in testbed.kube.objects) == needed


class DeletingCollector:
    """A collector of images that is deleting those of some Deployments."""

    def __init__(self, *names):
        self._names = frozenset(names)

    async def refresh(self, _name):
        return self._names

    async def collect(self, _project, _deployments):
        return None


async def test_a_head_whose_deployment_is_being_deleted_is_deployed_later(make, config):
    testbed, git = ReconcilerTestbed(), {"url": "https://example.org/x.git"}
    status = {"lastOrder": 2, "source": {"commit": "b" * 40, "tree": "tb", "order": 2}}
    project = make.project(source={"git": git}, status=status)
    testbed.show(kinds.PROJECT, project)
    head = ObservedSource(git, "", "main", "a" * 40, "ta", "subject")
    spec = revision.desired_spec(project, head)
    name = git_name(project.uid, spec, 1)
    testbed.show(kinds.DEPLOYMENT, make.deployment(name, order=1, phase="Superseded", **spec))
    sources = ObservedSources()
    sources.put("demo", head)
    collector = DeletingCollector(name)
    reconciler = ProjectReconciler(testbed.applier, config, sources, collector, lambda *_: None)
    # The first one writes conditions, which enqueues the Project.
    await reconciler.reconcile("demo")
    await testbed.queued()
    await reconciler.reconcile("demo")
    # It waits: a key that is ready at once would be reconciled again and again.
    assert "projects/demo" not in await testbed.queued()
    assert testbed.queues.main.scheduled == 1


@pytest.mark.parametrize(
    "error",
    [
        errors.QuotaExceeded(403, "Forbidden", "exceeded quota: objects"),
        errors.Invalid(422, "Invalid", "spec.message: too long"),
    ],
)
async def test_a_refused_deployment_of_a_head_stops_no_rollback(make, config, error):
    git = {"url": "https://example.org/x.git"}
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project(source={"git": git}, status={"activeDeployment": "dep-b"}))
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-a", order=1, activation=1))
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-b", order=2))
    reconciler.observed_sources.put("demo", ObservedSource(git, "", "main", "a" * 40, "ta", "subject"))
    testbed.kube.refused["create", kinds.DEPLOYMENT] = error

    async def reconcile():
        with pytest.raises(type(error)):
            await reconciler.reconcile("demo")
        return testbed.kube.objects["projects", "demo"]["status"]

    status = await reconcile()
    assert status["activeDeployment"] == "dep-a" and "source" not in status
    ready = find(status["conditions"], "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "DeploymentRefused")
    assert error.message in ready["message"]
    assert recorded(testbed) == ["Activated", "DeploymentRefused"]
    # It is tried again: an Event once.
    assert (await reconcile())["conditions"] == status["conditions"] and not recorded(testbed)
    del testbed.kube.refused["create", kinds.DEPLOYMENT]
    await reconciler.reconcile("demo")
    assert len(testbed.kube.created) == 1
    conditions = testbed.kube.objects["projects", "demo"]["status"]["conditions"]
    assert [one["reason"] for one in conditions] == ["Resolved", "Resolved"]


async def test_fewer_kept_deployments_are_named_in_the_status(make, config):
    limits = InstallationLimits(retained_deployments=30)
    testbed, reconciler = reconciled(replace(config, limits=limits))
    testbed.show(kinds.PROJECT, make.project(retention={"deployments": 1000}))
    await reconciler.reconcile("demo")
    limited = find(testbed.kube.objects["projects", "demo"]["status"]["conditions"], "Limited")
    assert (limited["status"], limited["reason"]) == ("True", "AboveCeiling")
    assert limited["message"].startswith("retention.deployments: 1000 is lowered to 30. ")


async def test_what_the_plan_lowers_is_named_in_the_status(make, config):
    lower = {"retained_deployments": 5, "run_max_seconds": 60, "warm_pods": 1, "warm_builders": 0}
    plans = Plans({"free": PlanLimits(60, 2, limits=lower)})
    testbed, reconciler = reconciled(replace(config, plans=plans))
    spec = {
        "retention": {"deployments": 6},
        "run": {"timeout": "2m", "warm": 2},
        "build": {"warm": 1},
    }
    testbed.show(kinds.PROJECT, make.project(**spec))
    await reconciler.reconcile("demo")
    limited = find(testbed.kube.objects["projects", "demo"]["status"]["conditions"], "Limited")
    for note in (
        "run.timeout: 2m is lowered to 1m",
        "run.warm: 2 is lowered to 1",
        "build.warm: 1 is lowered to 0",
        "retention.deployments: 6 is lowered to 5",
    ):
        assert note in limited["message"]


async def test_a_deployment_of_an_earlier_project_is_not_activated(make, config):
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project())
    earlier = {**reference(kinds.PROJECT, make.project()), "uid": "uid-earlier"}
    dying = make.deployment("dep-dying", order=7, metadata={"ownerReferences": [earlier]})
    testbed.show(kinds.DEPLOYMENT, dying)
    await reconciler.reconcile("demo")
    assert "activeDeployment" not in testbed.kube.objects["projects", "demo"]["status"]
    assert testbed.kube.objects["deployments", "dep-dying"]["status"]["order"] == 7


@pytest.mark.parametrize("recreated", [False, True])
async def test_a_project_that_leaves_its_deployments_does_not_adopt_them(make, config, recreated):
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project())
    testbed.show(kinds.DEPLOYMENT, make.deployment())
    for _ in range(2):
        await reconciler.reconcile("demo")
    del testbed.kube.objects["deployments", "dep-a"]["metadata"]["ownerReferences"]
    status = testbed.kube.objects["projects", "demo"]["status"]
    list_objects = testbed.kube.list

    async def listed(kind, labels="", fields=""):
        """Delete the Project after the reconcile has read it: a Deployment shows it first."""
        deletion = {"uid": "uid-new"} if recreated else {"deletionTimestamp": make.ago(0)}
        testbed.kube.put(kinds.PROJECT, make.project(metadata=deletion, status=status))
        return await list_objects(kind, labels, fields)

    testbed.kube.list = listed
    await reconciler.reconcile("demo")
    assert "ownerReferences" not in testbed.kube.objects["deployments", "dep-a"]["metadata"]


@pytest.mark.parametrize("orphaned", [False, True])
async def test_images_of_deployments_without_an_owner_outlive_the_project(make, config, orphaned):
    """`kubectl delete cproj demo --cascade=orphan` leaves them to the next Project of this name."""
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project())
    deployment = make.deployment()
    deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:00"
    testbed.show(kinds.DEPLOYMENT, deployment)
    await reconciler.reconcile("demo")
    stored = testbed.kube.objects["deployments", "dep-a"]
    assert [owner["uid"] for owner in stored["metadata"]["ownerReferences"]] == ["uid-demo"]
    if orphaned:
        del stored["metadata"]["ownerReferences"]
    del testbed.kube.objects["projects", "demo"]
    await reconciler.reconcile("demo")
    pods = [name for name in testbed.kube.created if name.startswith("pods/")]
    assert len(pods) == (0 if orphaned else 1)


@pytest.mark.parametrize(
    ("labels", "added"), [({}, "demo"), ({"team": "a"}, "demo"), ({names.LABEL_PROJECT: "mine"}, None)]
)
@pytest.mark.parametrize("kind", [kinds.RUN, kinds.DEPLOYMENT])
def test_an_adopted_object_gets_the_label_of_its_project(make, kind, labels, added):
    made = make.run if kind == kinds.RUN else make.deployment
    (patch,) = adoption(kind, made(metadata={"labels": labels}), make.project())
    assert [owner["uid"] for owner in patch.body["metadata"]["ownerReferences"]] == ["uid-demo"]
    # A label that a user has set stays.
    assert patch.body["metadata"].get("labels") == ({names.LABEL_PROJECT: added} if added else None)


async def test_a_refused_prune_pod_stops_nothing_else(make, config):
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project(retention={"deployments": 1}))
    for order, name in enumerate(("dep-a", "dep-b", "dep-c"), 1):
        deployment = make.deployment(name, order=order)
        deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:0{order}"
        testbed.show(kinds.DEPLOYMENT, deployment)
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-0", built=False, phase="Failed"))
    testbed.kube.refused["create", kinds.POD] = errors.QuotaExceeded(403, "Forbidden", "exceeded quota: pods")
    await reconciler.reconcile("demo")
    # The Deployment without an image needs no pod.
    assert ("deployments", "dep-0") not in testbed.kube.objects
    assert testbed.kube.objects["projects", "demo"]["status"]["activeDeployment"] == "dep-c"
    assert recorded(testbed).count("PrunePodRefused") == 1
    assert testbed.queues.main.scheduled == 1
    # It is tried again after a pause, also if something else changes the Project.
    del testbed.kube.refused["create", kinds.POD]
    await reconciler.reconcile("demo")
    assert (testbed.kube.created, recorded(testbed)) == ([], [])
    now, refused = datetime.now(UTC), reconciler.image_collector.refused
    refused["demo"] = PruneRefusals(1, now)
    await reconciler.reconcile("demo")
    assert len(testbed.kube.created) == 1 and not refused


async def test_a_refused_deletion_of_a_deployment_is_an_error(make, config):
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project(retention={"deployments": 1}))
    for order, name in enumerate(("dep-a", "dep-b"), 1):
        deployment = make.deployment(name, order=order)
        deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:0{order}"
        testbed.show(kinds.DEPLOYMENT, deployment)
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-0", built=False, phase="Failed"))

    async def delete(*_: object, **__: object) -> bool:
        raise errors.KubeForbidden(403, "Forbidden", "may not delete")

    testbed.kube.delete = delete
    with pytest.raises(errors.KubeForbidden, match="may not delete"):
        await reconciler.reconcile("demo")


async def test_the_images_of_a_deleted_project_wait_for_a_quota(make, config):
    testbed, reconciler = reconciled(config)
    testbed.show(kinds.PROJECT, make.project())
    deployment = make.deployment()
    deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:00"
    testbed.show(kinds.DEPLOYMENT, deployment)
    await reconciler.reconcile("demo")
    await testbed.queued()
    del testbed.kube.objects["projects", "demo"]
    quota = errors.QuotaExceeded(403, "Forbidden", "exceeded quota: pods")
    testbed.kube.refused["create", kinds.POD] = quota
    images, tries = reconciler.image_collector, 0
    for _ in range(2 * MAX_REFUSED_PODS):
        await reconciler.reconcile("demo")
        if (refused := images.refused.get("demo")) is None:
            break
        tries += 1
        assert refused.count == tries and testbed.queues.main.scheduled
        # Events of its objects, which are deleted now, are no further tries, and drop none.
        await reconciler.reconcile("demo")
        assert images.refused["demo"] == refused
        assert event_map.project("demo") in testbed.queues.main._due
        images.refused["demo"] = replace(refused, retry_at=datetime.now(UTC))
        if tries == 3:
            left = replace(refused, retry_at=datetime.now(UTC)), images.remaining["demo"]
    assert (tries, images.remaining) == (MAX_REFUSED_PODS - 1, {})
    # With room in the quota, the next try removes them.
    images.refused["demo"], images.remaining["demo"] = left
    del testbed.kube.refused["create", kinds.POD]
    await reconciler.reconcile("demo")
    assert len(testbed.kube.created) == 1 and not images.refused


async def test_image_collection_reads_only_runs_that_may_need_its_images(make, config):
    testbed, reconciler = reconciled(config)
    runs = {"run-a": {"project": "demo"}, "run-b": {}, "run-c": {"project": "other"}}
    for name, spec in runs.items():
        testbed.show(kinds.RUN, make.run(name, **spec, deployment=f"dep-{name}"))
    needed = reconciler.image_collector._cached_run_deployments("demo")
    assert needed == {"dep-run-a", "dep-run-b"}


@pytest.mark.parametrize("deleted", [False, True])
async def test_no_prune_pod_gets_a_secret_of_another_project(make, config, deleted):
    """Its name may be written into the Project after the builds, which check it too."""
    testbed, reconciler = reconciled(replace(config, secret_use=SecretUse.LABELLED))
    secret = {"metadata": {"name": "push", "uid": "u", "labels": {names.LABEL_PROJECT: "other"}}}
    testbed.kube.put(kinds.SECRET, Object(secret))
    build = {"push": {"secretRef": {"name": "push"}}}
    testbed.show(kinds.PROJECT, make.project(retention={"deployments": 1}, build=build))
    for order, name in enumerate(("dep-a", "dep-b"), 1):
        deployment = make.deployment(name, order=order, phase="Superseded")
        deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:0{order}"
        testbed.show(kinds.DEPLOYMENT, deployment)
    await reconciler.reconcile("demo")
    if deleted:
        del testbed.kube.objects["projects", "demo"]
        reconciler.image_collector.refused.clear()
        await reconciler.reconcile("demo")
    else:
        assert "PrunePodRefused" in recorded(testbed)
    assert testbed.kube.created == [] and "demo" in reconciler.image_collector.refused
    secret["metadata"]["labels"][names.LABEL_PROJECT] = "demo"
    testbed.kube.put(kinds.SECRET, Object(secret))
    reconciler.image_collector.refused["demo"] = PruneRefusals(1, datetime.now(UTC))
    await reconciler.reconcile("demo")
    assert len(testbed.kube.created) == 1


def recorded(testbed):
    """Take the Events that wait; return their reasons."""
    queue = testbed.applier.recorder._queue
    return [queue.get_nowait()["reason"] for _ in range(queue.qsize())]


def reconciled(config):
    testbed = ReconcilerTestbed()
    images = ImageCollector(testbed.applier, config)
    return testbed, ProjectReconciler(testbed.applier, config, ObservedSources(), images, lambda *_: None)
