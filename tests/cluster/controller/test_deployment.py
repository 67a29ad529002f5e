"""Builds against a real kubelet. The test image has no `build` module, so build pods fail."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from controller.deployment import queue
from controller.deployment.deadlines import STOP_GRACE_SECONDS
from controller.deployment.steps import ANNOTATION_STEP
from crds import kinds, names
from crds.objects import Deployment, Pod
from kube import errors
from tests.cluster.controller.conftest import (
    FAST,
    IMAGE,
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    condition,
    controller,
    report_result,
    settings,
)

NO_IMAGE = "registry.crewyard.internal:5000/library/none:1"

SOURCE = {"archive": {"upload": "upl_1"}}


async def create(testbed, name, project="demo", source=SOURCE):
    spec = {"project": project, "source": source}
    await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})


@both_triggers
async def test_build_fails_after_four_attempts(testbed):
    """Slow: four pods start on the node, with a back-off between them."""
    await testbed.project()
    await create(testbed, "dep-a")
    found = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"]["phase"] == "Failed", 900)
    error = found["status"]["error"]
    assert error["reason"] == "BuildFailed"
    assert "after 4 attempts" in error["message"]
    assert "No module named build" in error["log"]
    assert condition(found, "Built") == ("False", "BuildFailed")
    assert condition(found, "Stalled") == ("True", "BuildFailed")
    pods = [Pod(raw).name for raw in (await testbed.kube.list(kinds.POD)).items]
    assert sorted(pods) == ["dep-a-a1", "dep-a-a2", "dep-a-a3", "dep-a-a4"]


async def test_build_waits_for_its_project(idle_builds):
    testbed = idle_builds
    await create(testbed, "dep-a")
    await testbed.until(
        kinds.DEPLOYMENT, "dep-a", lambda o: condition(o, "Ready") == ("Unknown", "ProjectNotFound")
    )
    project = await testbed.project()
    found = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    assert found["status"]["buildPod"] == "dep-a-a1"
    found = await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["metadata"].get("ownerReferences"))
    assert found["metadata"]["ownerReferences"][0]["uid"] == project.uid


async def test_second_build_of_a_project_is_queued(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await create(testbed, "dep-a")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    await create(testbed, "dep-b")
    waiting = await testbed.until(
        kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "Queued")
    )
    assert waiting["status"]["phase"] == "Pending"
    await testbed.mark_built("dep-a")
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))


def archive(sha: str) -> dict[str, object]:
    return {"archive": {"upload": "upl_1", "sha256": sha * 64}}


@pytest.fixture
async def idle_builds(kube, trigger):
    """A controller whose build pods never start and never time out."""
    timing = replace(FAST, image_pull=600, start_timeout=600)
    config = settings(kube.namespace, kopf=trigger == "kopf", service_image=NO_IMAGE, timing=timing)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def building(kube) -> set[str]:
    """Return the Deployments that have a build pod."""
    listing = await kube.list(kinds.POD, names.LABEL_DEPLOYMENT)
    return {pod.labels[names.LABEL_DEPLOYMENT] for pod in map(Pod, listing.items) if not pod.deleting}


async def test_image_of_the_same_source_is_reused(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await create(testbed, "dep-a", source=archive("a"))
    key = (await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("sourceKey")))["status"]
    await create(testbed, "dep-b", source=archive("a"))
    await testbed.until(
        kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "SameSourceBuilding")
    )
    await testbed.mark_built("dep-a")
    await testbed.wait_active("dep-b")
    await create(testbed, "dep-c", source=archive("a"))
    await testbed.wait_active("dep-c")
    await create(testbed, "dep-d", source=archive("d"))
    for name in ("dep-b", "dep-c"):
        found = await testbed.kube.get(kinds.DEPLOYMENT, name)
        assert found["status"]["image"] == IMAGE and found["status"]["sourceKey"] == key["sourceKey"]
        assert condition(found, "Built") == ("True", "Reused")
    await testbed.until(kinds.DEPLOYMENT, "dep-d", lambda o: o["status"].get("buildPod"))
    assert await building(testbed.kube) == {"dep-a", "dep-d"}


async def test_image_that_only_a_status_names_is_not_reused(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await create(testbed, "dep-a", source=archive("a"))
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("sourceKey"))
    await testbed.mark_built("dep-a", proven=False)
    await testbed.wait_active("dep-a")
    await create(testbed, "dep-b", source=archive("a"))
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))


@both_triggers
async def test_waiting_build_starts_when_the_other_is_deleted(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await create(testbed, "dep-a", source=archive("a"))
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("sourceKey"))
    await create(testbed, "dep-b", source=archive("a"))
    await testbed.until(
        kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "SameSourceBuilding")
    )
    await testbed.kube.delete(kinds.DEPLOYMENT, "dep-a")
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))


def message(o) -> str:
    return next(c["message"] for c in o["status"]["conditions"] if c["type"] == "Ready")


async def test_free_slot_is_taken_without_writing_waiters(idle_builds):
    testbed = idle_builds
    for project in ("a", "b", "c"):
        await testbed.project(project)
    order = [("dep-1", "a"), ("dep-2", "a"), ("dep-3", "b"), ("dep-4", "c"), ("dep-5", "a")]
    for name, project in order:
        await create(testbed, name, project)
        await testbed.until(kinds.DEPLOYMENT, name, lambda o: condition(o, "Ready")[1] != "Pending")
    assert await building(testbed.kube) == {"dep-1", "dep-3"}
    behind = [f"dep-6{number}" for number in range(10)]
    for name in behind:
        await create(testbed, name, "abc"[int(name[-1]) % 3])
    queued = ["dep-2", "dep-4", "dep-5", *behind]
    for name in queued:
        found = await testbed.until(kinds.DEPLOYMENT, name, lambda o: condition(o, "Ready")[1] == "Queued")
        assert message(found).startswith("Waiting in the build queue; limits: 2 builds")
        await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["metadata"].get("ownerReferences"))
    await testbed.settle()
    versions = await written(testbed.kube)
    await testbed.kube.delete(kinds.DEPLOYMENT, "dep-1")
    await testbed.until(kinds.DEPLOYMENT, "dep-2", lambda o: o["status"].get("buildPod"))
    await testbed.mark_built("dep-3")
    await testbed.until(kinds.DEPLOYMENT, "dep-4", lambda o: o["status"].get("buildPod"))
    await testbed.settle()
    after = await written(testbed.kube)
    assert {name for name in queued if after[name] != versions[name]} == {"dep-2", "dep-4"}


async def written(kube) -> dict[str, str]:
    """Return the resource versions of all Deployments."""
    listing = await kube.list(kinds.DEPLOYMENT)
    return {found.name: found.resource_version for found in map(Deployment, listing.items)}


async def test_build_limits_hold_across_restarts(kube):
    """Slow: 16 builds through a controller that restarts every four."""
    timing = replace(FAST, image_pull=600, start_timeout=600)
    config = settings(kube.namespace, kopf=False, service_image=NO_IMAGE, timing=timing, max_builds=3)
    testbed, max_live = ControllerTestbed(kube, config), 0

    async def watch() -> None:
        nonlocal max_live
        while True:
            listing = await kube.list(kinds.DEPLOYMENT)
            live = [d for d in map(Deployment, listing.items) if queue.occupies_slot(d)]
            max_live = max(max_live, len(live))
            for project in ("a", "b", "c", "d"):
                assert sum(d.project == project for d in live) <= 1, [d.name for d in live]
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    try:
        async with controller(kube, config):
            for project in ("a", "b", "c", "d"):
                await testbed.project(project)
            await asyncio.gather(*(create(testbed, f"dep-{i:02d}", "abcd"[i % 4]) for i in range(16)))
        remaining = {f"dep-{i:02d}": "abcd"[i % 4] for i in range(16)}
        while remaining:
            async with controller(kube, config):
                for _ in range(4):
                    expected = min(3, len(set(remaining.values())))
                    async with asyncio.timeout(WAIT_SECONDS):
                        while len(building_now := await building(kube) & set(remaining)) < expected:
                            await asyncio.sleep(0.02)
                    # Finish two together to free two slots together.
                    for name in sorted(building_now)[:2]:
                        await testbed.mark_built(name)
                        del remaining[name]
                    if not remaining:
                        break
        if watching.done():
            watching.result()
        assert max_live == 3
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def test_projects_take_turns_although_one_queued_all_its_builds_first(kube):
    timing = replace(FAST, image_pull=600, start_timeout=600)
    config = settings(kube.namespace, service_image=NO_IMAGE, timing=timing, max_builds=1)
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        for project in ("a", "b", "c"):
            await testbed.project(project)
        for number, project in enumerate("aaaabc"):
            source = {"archive": {"upload": "upl_1", "sha256": f"{number:064x}"}}
            await create(testbed, f"dep-{number}-{project}", project, source)
            await testbed.until(
                kinds.DEPLOYMENT,
                f"dep-{number}-{project}",
                lambda o: o["status"].get("buildPod") or condition(o, "Ready") == ("Unknown", "Queued"),
            )
        order: list[str] = []
        async with asyncio.timeout(WAIT_SECONDS):
            while len(order) < 6:
                for name in sorted(await building(kube) - set(order)):
                    order.append(name)
                    await testbed.mark_built(name)
                await asyncio.sleep(0.05)
    assert [name[-1] for name in order] == list("abcaaa")


async def create_sleeping_build_pod(kube, deployment: Deployment) -> None:
    """Create a long-running build pod that no status records, as after a controller crash."""
    owner = {"apiVersion": names.API_VERSION, "kind": "Deployment"}
    labels = {
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_COMPONENT: names.COMPONENT_BUILD,
        names.LABEL_DEPLOYMENT: deployment.name,
    }
    body = {
        "metadata": {
            "name": f"{deployment.name}-a1",
            "labels": labels,
            "annotations": {ANNOTATION_STEP: "1"},
            "ownerReferences": [{**owner, "name": deployment.name, "uid": deployment.uid}],
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": STOP_GRACE_SECONDS,
            "containers": [{"name": "assemble", "image": IMAGE, "command": ["sleep", "600"]}],
        },
    }
    await kube.create(kinds.POD, body)
    async with asyncio.timeout(WAIT_SECONDS):
        while Pod(await kube.get(kinds.POD, f"{deployment.name}-a1")).phase != "Running":
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("what", ["deployment", "project"])
async def test_deleted_owner_stops_build_and_frees_slot(testbed, what):
    """Slow: the kubelet starts a pod and stops it."""
    await create(testbed, "dep-a")
    created = Deployment(await testbed.kube.get(kinds.DEPLOYMENT, "dep-a"))
    await create_sleeping_build_pod(testbed.kube, created)
    await testbed.project()
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod") == "dep-a-a1")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["metadata"].get("ownerReferences"))
    await create(testbed, "dep-b")
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "Queued"))
    if what == "deployment":
        await testbed.kube.delete(kinds.DEPLOYMENT, "dep-a")
        await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))
    else:
        await testbed.kube.delete(kinds.PROJECT, "demo")
    async with asyncio.timeout(WAIT_SECONDS):
        while await testbed.kube.get(kinds.POD, "dep-a-a1"):
            await asyncio.sleep(0.1)


async def test_orphaned_build_pods_are_stopped_at_startup(kube):
    config = settings(kube.namespace, kopf=False)
    testbed = ControllerTestbed(kube, config)
    await create(testbed, "dep-a")
    created = Deployment(await kube.get(kinds.DEPLOYMENT, "dep-a"))
    await create_sleeping_build_pod(kube, created)
    # The garbage collector ignores objects without an owner.
    await kube.patch(kinds.POD, "dep-a-a1", {"metadata": {"ownerReferences": None}})
    await kube.delete(kinds.DEPLOYMENT, "dep-a")
    async with controller(kube, config):
        async with asyncio.timeout(WAIT_SECONDS):
            while await kube.get(kinds.POD, "dep-a-a1"):
                await asyncio.sleep(0.1)


async def test_deleted_deployment_deletes_its_pods(testbed):
    await testbed.project()
    await create(testbed, "dep-a")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    await testbed.kube.delete(kinds.DEPLOYMENT, "dep-a")
    async with asyncio.timeout(WAIT_SECONDS):
        while (await testbed.kube.list(kinds.POD)).items:
            await asyncio.sleep(0.2)


async def cancel(kube, name: str) -> bool:
    """Cancel a build as kubectl does. Return False if the kube-apiserver refuses because it has ended."""
    try:
        await kube.patch(kinds.DEPLOYMENT, name, {"spec": {"cancel": True}})
    except errors.Invalid as refusal:
        assert "can no longer be canceled" in refusal.message
        return False
    return True


async def wait_canceled(testbed, name: str) -> Deployment:
    return Deployment(await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"]["phase"] == "Failed"))


@both_triggers
async def test_canceled_build_loses_its_pod_and_frees_its_slot(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await testbed.deployment("dep-old")
    await testbed.wait_active("dep-old")
    await create(testbed, "dep-a", source=archive("a"))
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    await create(testbed, "dep-b", source=archive("b"))
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: condition(o, "Ready") == ("Unknown", "Queued"))
    assert await cancel(testbed.kube, "dep-a")
    found = await wait_canceled(testbed, "dep-a")
    assert found.error["reason"] == "Canceled" and found.image is None
    assert condition(found, "Ready") == ("False", "Canceled")
    async with asyncio.timeout(WAIT_SECONDS):
        while await testbed.kube.get(kinds.POD, "dep-a-a1") is not None:
            await asyncio.sleep(0.05)
    await testbed.until(kinds.DEPLOYMENT, "dep-b", lambda o: o["status"].get("buildPod"))
    project = await testbed.kube.get(kinds.PROJECT, "demo")
    assert project["status"]["activeDeployment"] == "dep-old"
    with pytest.raises(errors.Invalid, match="cannot be undone"):
        await testbed.kube.patch(kinds.DEPLOYMENT, "dep-a", {"spec": {"cancel": False}})


async def test_canceled_build_in_the_queue_never_gets_a_pod(idle_builds):
    testbed = idle_builds
    await testbed.project()
    await create(testbed, "dep-a", source=archive("a"))
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))
    for name, sha in (("dep-b", "b"), ("dep-c", "a"), ("dep-d", "d")):
        await create(testbed, name, source=archive(sha))
    waiting = {"dep-b": "Queued", "dep-c": "SameSourceBuilding"}
    for name, reason in waiting.items():
        await testbed.until(
            kinds.DEPLOYMENT, name, lambda o, reason=reason: condition(o, "Ready") == ("Unknown", reason)
        )
        assert await cancel(testbed.kube, name)
        assert (await wait_canceled(testbed, name)).error["reason"] == "Canceled"
    await testbed.mark_built("dep-a")
    await testbed.until(kinds.DEPLOYMENT, "dep-d", lambda o: o["status"].get("buildPod"))
    pods = {Pod(raw).name for raw in (await testbed.kube.list(kinds.POD)).items}
    assert pods <= {"dep-a-a1", "dep-d-a1"}
    assert not await cancel(testbed.kube, "dep-a")


async def test_cancellation_that_races_with_success_has_one_outcome(kube):
    """Sixteen builds, each ended by whichever write the kube-apiserver accepts first.

    Slow: sixteen build pods are created, and each build ends twice.
    """
    timing = replace(FAST, image_pull=600, start_timeout=600)
    config = settings(
        kube.namespace,
        service_image=NO_IMAGE,
        timing=timing,
        max_builds=16,
        max_builds_per_project=16,
        controller_url="http://controller.example",
    )
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        await testbed.project()
        builds = [f"dep-{number:02d}" for number in range(16)]
        for number, name in enumerate(builds):
            source = {"archive": {"upload": "upl_1", "sha256": f"{number:064x}"}}
            await create(testbed, name, source=source)

        async def race(number: int, name: str) -> bool:
            found = await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("buildPod"))
            pod = Pod(await testbed.until(kinds.POD, f"{name}-a1", lambda _: True))
            image = f"{config.repository('demo')}@sha256:{number:064x}"
            built = {"outcome": "built", "image": image, "plan": {}, "tree": "t", "build_key": "k"}

            async def succeed() -> None:
                report_result(process, name, found["metadata"]["uid"], pod.uid, built)

            order = (cancel(kube, name), succeed()) if number % 2 else (succeed(), cancel(kube, name))
            accepted = await asyncio.gather(*order)
            return True in accepted

        canceled = await asyncio.gather(*(race(number, name) for number, name in enumerate(builds)))
        for name, accepted in zip(builds, canceled, strict=True):
            end = Deployment(
                await testbed.until(
                    kinds.DEPLOYMENT, name, lambda o: Deployment(o).failed or Deployment(o).built
                )
            )
            assert end.failed == accepted and end.built != accepted, (name, accepted, end.status)
            assert not accepted or end.error["reason"] == "Canceled"
