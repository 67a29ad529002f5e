"""Deletion of unused images: by the controller, its pod and the registry.

One project goes through all of it: of three deployments two are kept, a dependency image was last used
fifteen days ago, one of the two is erased, and at last the project itself is deleted.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.registry import RegistryRepository
from tests.e2e.testbed import eventually

OLD, NEW = "idna==3.9\n", "idna==3.10\n"
CODE = "import idna\n\n\ndef kickoff(inputs):\n    return [{number}, idna.__version__]\n"
LONG_AGO = (datetime.now(UTC) - timedelta(days=15)).strftime("%Y-%m-%dT00:00:00Z")
# The controller announces a removal for half a minute; a slow machine takes its time for the pod.
SECONDS = 600


def files(number: int, requirements: str) -> dict[str, bytes | str]:
    return {"main.py": CODE.format(number=number), "requirements.txt": requirements}


async def patch_status(testbed, kind: str, name: str, status: dict) -> None:
    patch = json.dumps({"status": status})
    await testbed.kubectl(
        "patch", f"{kind}.crewyard.dev", name, "--subresource=status", "--type=merge", "-p", patch
    )


async def was_built_long_ago(testbed, upload_project, deployment: str) -> None:
    """Otherwise its dependency image counts as used today."""
    shown = await upload_project.object(deployment)
    conditions = shown["status"]["conditions"]
    next(condition for condition in conditions if condition["type"] == "Built")["lastTransitionTime"] = (
        LONG_AGO
    )
    await patch_status(testbed, "deployments", shown["metadata"]["name"], {"conditions": conditions})


async def prune_pods(testbed, project: str) -> list[str]:
    label = f"crewyard.dev/project={project},app.kubernetes.io/component=prune"
    return (await testbed.kubectl("get", "pods", "-l", label, "-o", "name")).split()


@pytest.mark.nightly
async def test_old_images_are_deleted_and_kept_ones_run(testbed, upload_projects):
    """Slow: several builds, and the delay between announcing and deleting an image."""
    upload_project = await upload_projects()
    first = await upload_project.deploy_and_wait(files(1, OLD))
    second = await upload_project.deploy_and_wait(files(2, NEW))
    third = await upload_project.deploy_and_wait(files(3, NEW))
    images = {one: await upload_project.image(one) for one in (first, second, third)}
    built = [(await upload_project.object(one))["status"] for one in (first, second)]
    old, new, base = (*(one["dependenciesKey"] for one in built), built[0]["baseKey"])
    registry = RegistryRepository.of(images[first])

    async def there() -> list[bool]:
        """Images of the three in turn, then the dependency images and the one below them."""
        digests = [image.partition("@")[2] for image in images.values()]
        return [await registry.has(one) for one in (*digests, *(f"deps-{key}" for key in (old, new, base)))]

    assert await there() == [True] * 6
    await was_built_long_ago(testbed, upload_project, first)
    project = await testbed.object("projects", upload_project.project)
    used = [
        {**dependency, **({"usedAt": LONG_AGO} if dependency["key"] == old else {})}
        for dependency in project["status"]["dependencies"]
    ]
    assert {one["key"] for one in used} == {old, new, base}
    # At once, so that one announcement may be about both; two do it, too, a little later.
    keeps = {"spec": {"retention": {"deployments": 2}}}
    await asyncio.gather(
        patch_status(testbed, "projects", upload_project.project, {"dependencies": used}),
        testbed.kubectl("patch", "cproj", upload_project.project, "--type=merge", "-p", json.dumps(keeps)),
    )
    await eventually(there, lambda seen: seen == [False, True, True, False, True, True], SECONDS, 0.5)
    deleted = await eventually(
        lambda: testbed.call("GET", f"/v1/deployments/{first}"), lambda answer: answer.status == 404, 300
    )
    assert deleted.status == 404
    await eventually(lambda: prune_pods(testbed, upload_project.project), lambda pods: pods == [], 300)
    project = await testbed.object("projects", upload_project.project)
    assert {dependency["key"] for dependency in project["status"]["dependencies"]} == {new, base}

    # No node has its image yet: it comes from the registry, with the layers of the kept dependency image.
    run = (await testbed.post("/v1/runs", {"deployment": second}))["id"]
    done = await eventually(
        lambda: testbed.get(f"/v1/runs/{run}"), lambda seen: seen["completed_at"] is not None, 600
    )
    assert (done["status"], done["output"]) == ("succeeded", [2, "3.10"]), done

    # An erased deployment is hidden at once, and its image goes.
    for path in (f"/v1/runs/{run}", f"/v1/deployments/{second}"):
        assert (await testbed.call("DELETE", path)).status == 204
        assert (await testbed.call("GET", path)).status == 404
    await eventually(there, lambda seen: seen == [False, False, True, False, True, True], SECONDS, 0.5)

    # The project goes, and with it all that is left of it in the registry.
    answer = await testbed.call("DELETE", f"/v1/projects/{upload_project.project}")
    assert answer.status == 204, answer.body
    await eventually(there, lambda seen: seen == [False] * 6, SECONDS, 0.5)
    await eventually(lambda: prune_pods(testbed, upload_project.project), lambda pods: pods == [], 300)
