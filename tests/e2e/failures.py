"""The reported error of a failed deployment, by API and kubectl. Called by the tests of failures."""

from typing import Any

from tests.e2e.testbed import eventually
from tests.e2e.upload_project import BUILD_SECONDS, UploadProject


async def failed(
    upload_project: UploadProject,
    deployment: str,
    reason: str,
    words: list[str],
    seconds: float = BUILD_SECONDS,
) -> dict[str, Any]:
    """The error of a deployment that must fail so: reason, message, next step, log, conditions and event.

    The object has the log's last lines too, so that kubectl shows what happened.
    """
    done = await upload_project.wait_finished(deployment, seconds)
    assert done["status"] == "failed", done
    error: dict[str, Any] = done["error"]
    assert error["reason"] == reason, error
    whole = " ".join(str(value) for value in error.values())
    assert [word for word in words if word not in whole] == [], error
    assert error["message"] and error.get("hint"), error

    shown = await upload_project.object(deployment)
    assert shown["status"]["phase"] == "Failed"
    assert shown["status"]["error"]["reason"] == reason
    assert shown["status"]["error"].get("log", "").strip(), shown["status"]["error"]
    ready = next(condition for condition in shown["status"]["conditions"] if condition["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", reason)
    name = shown["metadata"]["name"]

    async def look() -> str:
        return await upload_project.testbed.kubectl(
            "get",
            "events",
            "--field-selector",
            f"involvedObject.name={name}",
            "-o",
            "jsonpath={.items[*].reason}",
        )

    await eventually(look, lambda reasons: reason in reasons.split(), 300)
    assert (await upload_project.log(deployment)).strip(), "no build log"
    return error
