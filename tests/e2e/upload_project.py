"""A project that is deployed by uploads, as from a laptop or a workflow. Called by tests and bench."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.testbed import E2eTestbed, eventually

UNBUILT = ("pending", "building")
BUILD_SECONDS = 900
"""Upper bound of a wait for a build, which may be behind those of other tests."""


def archive(files: Mapping[str, bytes | str]) -> bytes:
    """A .tar.gz of some files: the same bytes for the same files in the same order."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tree(directory: Path) -> dict[str, bytes]:
    """The files below a directory, without what Python leaves there."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


async def upload(testbed: E2eTestbed, project: str, content: bytes, key: str | None = None) -> str:
    """Upload an archive; return the build_context_url."""
    body = {"project": project, "size": len(content)}
    ticket = (await testbed.call("POST", "/v1/uploads", body, key=key)).data
    answer = await testbed.call(
        ticket["method"], ticket["upload_url"], data=content, key="", headers=ticket["headers"]
    )
    assert answer.status in (200, 201, 204), answer.body
    return str(ticket["build_context_url"])


@dataclass(frozen=True)
class UploadProject:
    """One project and its deployments."""

    testbed: E2eTestbed
    project: str

    async def deploy(self, source: Mapping[str, bytes | str] | bytes, **more: Any) -> str:
        """Upload files (or an archive as it is) and asks for a deployment; return its id."""
        content = source if isinstance(source, bytes) else archive(source)
        context = await upload(self.testbed, self.project, content)
        body = {"project": self.project, "build_context_url": context, "message": "Deploy", **more}
        return str((await self.testbed.post("/v1/deployments", body))["id"])

    async def wait_finished(
        self, deployment: str, seconds: float = BUILD_SECONDS, pause: float = 0.1
    ) -> dict[str, Any]:
        """The deployment, once its build has ended."""
        found: dict[str, Any] = await eventually(
            lambda: self.testbed.get(f"/v1/deployments/{deployment}"),
            lambda seen: seen["status"] not in UNBUILT,
            seconds,
            pause,
        )
        return found

    async def deploy_and_wait(self, source: Mapping[str, bytes | str] | bytes, **more: Any) -> str:
        """Deploy and waits for success; return the id."""
        deployment = await self.deploy(source, **more)
        done = await self.wait_finished(deployment)
        assert done["status"] in ("active", "superseded"), done
        return deployment

    async def object(self, deployment: str) -> dict[str, Any]:
        """The Deployment as kubectl shows it."""
        found: dict[str, Any] = await self.testbed.object("deployments", deployment.replace("_", "-", 1))
        return found

    async def image(self, deployment: str) -> str:
        """The image's reference, by digest."""
        return str((await self.object(deployment))["status"]["image"])

    async def pods(self, deployment: str) -> list[dict[str, Any]]:
        """The build pods that are there now."""
        label = f"crewyard.dev/deployment={deployment.replace('_', '-', 1)},app.kubernetes.io/component=build"
        found: list[dict[str, Any]] = json.loads(
            await self.testbed.kubectl("get", "pods", "-l", label, "-o", "json")
        )["items"]
        return found

    async def log(self, deployment: str) -> str:
        """The build's log, through the API."""
        answer = await self.testbed.call("GET", f"/v1/deployments/{deployment}/logs")
        assert answer.status == 200, answer.body
        return bytes(answer.body).decode()
