"""Failures that come after several attempts: started early by other files, checked here."""

from tests.e2e.failures import failed


async def test_registry_refuses_the_push(unpushable):
    upload_project, deployment = unpushable
    error = await failed(upload_project, deployment, "RegistryPush", ["registry", "500"])
    assert "outcome" not in error["message"], "words for people"
    assert "500" in (await upload_project.object(deployment))["status"]["error"]["log"].splitlines()[-1]


async def test_missing_image(testbed, crew, unpullable):
    """Slow: the controller gives up a pull after 90 s."""
    started, image = unpullable
    run = await crew.wait_finished(started)
    assert (run["status"], run["error"]["reason"]) == ("failed", "ImagePullFailed")
    assert image.rpartition("@")[2][:19] in run["error"]["message"]
    assert [message.event for message in await testbed.events(run["id"])] == ["run.failed"]
