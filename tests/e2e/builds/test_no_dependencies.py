"""A crew without dependencies: one pod, none with Kaniko, once the installation has made its base image."""

import json

from tests.e2e.conftest import BuiltCrew
from tests.e2e.testbed import eventually

CREW = {"main.py": "import pwd, os\n\n\ndef kickoff(inputs):\n    return pwd.getpwuid(os.getuid()).pw_name\n"}


async def test_a_new_project_without_dependencies_needs_one_pod(testbed, upload_projects):
    """Slow: two builds and a run."""
    # The first one of the installation makes the image, if no other test has.
    await (await upload_projects()).deploy_and_wait(CREW)
    project = await upload_projects()
    deployment = await project.deploy_and_wait(CREW)
    (pod,) = await project.pods(deployment)
    assert [container["name"] for container in pod["spec"]["containers"]] == ["assemble"]
    assert "initContainers" not in pod["spec"]
    shown = await testbed.get(f"/v1/deployments/{deployment}")
    assert [stage["name"] for stage in shown["stages"]] == ["queued", "fetch", "plan", "assemble"]
    assert all(stage["seconds"] >= 0 for stage in shown["stages"])
    run = await BuiltCrew(testbed, project.project, deployment).run("kickoff")
    assert (run["status"], run["output"]) == ("succeeded", "crew")


async def test_a_build_takes_a_pod_that_waits_for_one(testbed, upload_projects):
    """Slow: a build without a waiting pod, the start of one, and a build with it."""
    project = await upload_projects()
    await project.deploy_and_wait(CREW)
    waiting = f"crewyard.dev/project={project.project},crewyard.dev/warm-builder,!crewyard.dev/deployment"

    async def running() -> list[str]:
        pods = json.loads(await testbed.kubectl("get", "pods", "-l", waiting, "-o", "json"))["items"]
        return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]

    await testbed.call("PATCH", f"/v1/projects/{project.project}", {"build": {"warm": 1}})
    (name,) = await eventually(running, lambda names: len(names) == 1, 600)
    deployment = await project.deploy_and_wait({"main.py": f"{CREW['main.py']}# changed\n"})
    shown = await testbed.object("deployments", deployment.replace("_", "-", 1))
    assert shown["status"]["buildPod"] == name
    (pod,) = await project.pods(deployment)
    assert pod["metadata"]["name"] == name and pod["spec"]["activeDeadlineSeconds"] > 0
    log = await testbed.call("GET", f"/v1/deployments/{deployment}/logs")
    assert "already in the registry" in str(log.body)
    # Another one takes its place, with the same credentials; none is left without the setting.
    await eventually(running, lambda names: len(names) == 1 and name not in names, 600)
    await testbed.call("PATCH", f"/v1/projects/{project.project}", {"build": {"warm": 0}})
    await eventually(running, lambda names: names == [], 600)
