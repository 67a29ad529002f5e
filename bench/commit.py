"""Push → Deployment object, at a poll interval of one second."""

import asyncio
import json
import os
import secrets
import tempfile
import time
from pathlib import Path

from bench.finding import Finding
from bench.ground import Ground
from tests.e2e.demo import GIT_HOST
from tests.gitserver import GitServer

COUNT = 10


async def measure(ground: Ground) -> list[Finding]:
    """Seconds from the commit until the Deployment is seen."""
    yard, project = ground.yard, f"bench-{secrets.token_hex(3)}"
    ground.projects.append(project)
    seconds = []
    with (
        tempfile.TemporaryDirectory() as root,
        GitServer(Path(root), os.environ["CREWYARD_HOST_ADDRESS"]) as server,
    ):
        repository = server.create(project)
        git = {"url": server.url(project, host=GIT_HOST), "interval": "1s"}
        await yard.apply("Project", project, {"source": {"git": git}})
        for number in range(COUNT):
            code = f"def kickoff(inputs):\n    return {number}\n"
            sha = repository.commit({"main.py": code}, f"Change {number}")
            begun = time.monotonic()
            while time.monotonic() - begun < 30:
                shown = await yard.kubectl(
                    "get", "cdep", f"--field-selector=spec.project={project}", "-o", "json"
                )
                if any(item["spec"]["gitSha"] == sha for item in json.loads(shown)["items"]):
                    break
            seconds.append(time.monotonic() - begun)
            await asyncio.sleep(0.37)
    return [Finding("commit", "push → Deployment object, polled every second", values=seconds)]
