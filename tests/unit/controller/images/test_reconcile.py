"""Image cleanup of a Project whose name a later Project has before the controller sees its absence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controller.images import pod as prune_pod
from controller.images.reconcile import ImageCollector
from controller.owner import reference
from crds import kinds
from crds.objects import Object, Pod
from crds.times import format_second
from kube import errors
from kube.client import Listing
from tests.unit.controller.memory_kube import ReconcilerTestbed

KEYS = [letter * 64 for letter in "abc"]


@pytest.fixture
def replaced(make, config):
    """Return a testbed, its collector, and functions that collect for the later Project, or for both.

    The later one has two of the three images of the earlier one.
    """
    testbed = ReconcilerTestbed()
    images = ImageCollector(testbed.applier, config)
    list_all = testbed.kube.list

    async def list_pods(kind, labels="", fields=""):
        if kind != kinds.POD:
            return await list_all(kind, labels, fields)
        pods = [obj for (plural, _), obj in testbed.kube.objects.items() if plural == "pods"]
        return Listing(pods, "1")

    testbed.kube.list = list_pods

    def built(name, image, project):
        owners = {"ownerReferences": [reference(kinds.PROJECT, project)] if project else []}
        deployment = make.deployment(name, metadata=owners, status={"dependenciesKey": KEYS[image]})
        deployment.raw["status"]["image"] = f"{config.repository('demo')}@sha256:0{image}"
        return deployment

    used = [{"key": key, "usedAt": "2099-01-01T00:00:00Z"} for key in KEYS]
    earlier = make.project(status={"dependencies": used})
    later = make.project(metadata={"uid": "uid-later"})
    before = [built(f"dep-{image}", image, earlier) for image in range(3)]
    # The garbage collector has not deleted dep-0 yet, and kubectl has orphaned dep-2.
    after = [before[0], built("dep-later", 1, later), built("dep-2", 2, None)]

    async def collect(project=later, deployments=after):
        testbed.show(kinds.PROJECT, project)
        for deployment in deployments:
            testbed.kube.put(kinds.DEPLOYMENT, deployment)
        await images.refresh("demo")
        await images.collect(project, deployments)
        return [Pod(obj) for (plural, _), obj in testbed.kube.objects.items() if plural == "pods"]

    async def see_both():
        assert await collect(earlier, before) == []
        testbed.kube.objects.clear()
        return await collect()

    return testbed, images, collect, see_both


def created_at(pod, seconds_ago):
    pod.metadata["creationTimestamp"] = format_second(datetime.now(UTC) - timedelta(seconds=seconds_ago))


async def test_the_images_of_a_replaced_project_are_deleted(replaced, config):
    _, images, collect, see_both = replaced
    [pod] = await see_both()
    assert pod.owner_uids == frozenset()
    assert prune_pod.images_of(pod) == [f"{config.repository('demo')}@sha256:00"]
    assert prune_pod.removal_of(pod).dependencies == (KEYS[0],)
    assert images.deleted_images("demo") == {f"{config.repository('demo')}@sha256:00"}
    created_at(pod, 0)
    assert await collect() == [pod] and images.remaining["demo"].project.uid == "uid-later"


async def test_the_images_of_a_replaced_project_wait_for_a_quota(replaced):
    testbed, images, collect, see_both = replaced
    quota = errors.QuotaExceeded(403, "Forbidden", "exceeded quota: pods")
    testbed.kube.refused["create", kinds.POD] = quota
    assert await see_both() == [] and testbed.queues.main.scheduled == 1
    del testbed.kube.refused["create", kinds.POD]
    assert await collect() == [], "too early"
    images.refused["demo"] = replace(images.refused["demo"], retry_at=datetime.now(UTC))
    assert len(await collect()) == 1


@pytest.mark.parametrize("message", ['{"outcome": "trouble"}', '{"outcome": "pruned"}'])
async def test_a_later_project_repeats_only_a_failed_image_cleanup(replaced, message):
    testbed, _, collect, see_both = replaced
    [pod] = await see_both()
    ended = {"name": "prune", "state": {"terminated": {"message": message}}}
    pod.raw["status"] = {"phase": "Succeeded", "containerStatuses": [ended]}
    created_at(pod, 61)
    testbed.kube.put(kinds.POD, Object(pod.raw))
    names = [one.name for one in await collect()]
    assert names == ([pod.name, f"{pod.name}-a2"] if "trouble" in message else [])


async def test_deployments_of_an_earlier_project_do_not_count_as_retained(make, config):
    """The earlier Project's have higher orders: they would be kept in place of the later one's."""
    testbed = ReconcilerTestbed()
    images = ImageCollector(testbed.applier, config)
    earlier, later = make.project(), make.project(metadata={"uid": "uid-later"}, retention={"deployments": 1})

    def superseded(name, order, project):
        owners = {"ownerReferences": [reference(kinds.PROJECT, project)]}
        status = {"image": f"{config.repository('demo')}@sha256:{order}"}
        made = make.deployment(name, order=order, phase="Superseded", metadata=owners)
        made.raw["status"] |= status
        return made

    deployments = [superseded("dep-old", 7, earlier), superseded("dep-new", 1, later)]
    for deployment in deployments:
        testbed.kube.put(kinds.DEPLOYMENT, deployment)
    testbed.show(kinds.PROJECT, later)
    await images.refresh("demo")
    await images.collect(later, deployments)
    assert testbed.kube.created == [] and images.deleting["demo"].deployments == frozenset()
    # One more of its own: the lowest order is deleted then.
    newest = superseded("dep-newest", 2, later)
    testbed.kube.put(kinds.DEPLOYMENT, newest)
    await images.collect(later, [*deployments, newest])
    assert images.deleting["demo"].deployments == {"dep-new"}
