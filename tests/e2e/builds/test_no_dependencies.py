"""A crew without dependencies: one pod, none with Kaniko, once the installation has made its base image."""

from tests.e2e.conftest import BuiltCrew

CREW = {"main.py": "import pwd, os\n\n\ndef kickoff(inputs):\n    return pwd.getpwuid(os.getuid()).pw_name\n"}


async def test_a_new_project_without_dependencies_needs_one_pod(testbed, upload_projects):
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
