"""The crew that is measured: it does nothing but say when it ended."""

import secrets
from dataclasses import dataclass

from tests.e2e.conftest import archive, upload
from tests.e2e.yard import Yard, eventually

CODE = b"""import time


def kickoff(inputs):
    print("first", flush=True)
    return {"end_ns": time.time_ns()}
"""


@dataclass(frozen=True)
class BenchCrew:
    """A project with a built crew."""

    yard: Yard
    project: str
    deployment: str


async def deploy(yard: Yard, project: str, files: dict[str, bytes], message: str) -> str:
    """Uploads files as a deployment and waits until it is active; gives its id."""
    context = await upload(yard, project, archive(files))
    body = {"project": project, "build_context_url": context, "message": message}
    made = await yard.post("/v1/deployments", body)
    await eventually(
        lambda: yard.get(f"/v1/deployments/{made['id']}"),
        lambda seen: seen["status"] == "active",
        600,
        pause=0.02,
    )
    return str(made["id"])


async def prepare(yard: Yard) -> BenchCrew:
    """A new project with the crew above."""
    project = f"bench-{secrets.token_hex(3)}"
    await yard.post("/v1/projects", {"name": project, "plan": "enterprise"})
    return BenchCrew(yard, project, await deploy(yard, project, {"main.py": CODE}, "Measure"))
