"""The main job from end to end: a commit becomes an active deployment and a finished run.

`make demo` runs it on the dev cluster of `make up`; the end-to-end tests run the same
script. It keeps its repository under the cluster's state directory, so that it
can be run again at once: then the second demonstration continues the first.
"""

import asyncio
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.e2e.testbed import E2eTestbed, eventually
from tests.e2e.timeline import Timeline
from tests.testbed.git_server import GitServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph"
PROJECT = "demo"
GIT_HOST = os.environ.get("CREWYARD_HOST_NAME") or "host.crewyard.internal"
GIT_PORT = 30418


def git_address() -> tuple[str, int]:
    """Where pods can reach a server of this host, and a port, the usual one if it is free."""
    address = os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, GIT_PORT))
        except OSError:
            return address, 0
    return address, GIT_PORT


class Demo:
    """The steps, in their order."""

    def __init__(self, testbed: E2eTestbed, timeline: Timeline, project: str, server: GitServer) -> None:
        self.testbed = testbed
        self.timeline = timeline
        self.project = project
        self.repository = server.create(project)
        self.url = server.url(project, host=GIT_HOST)

    def commit(self, message: str) -> str:
        """A commit that changes the code and not the dependencies."""
        files = {
            str(path.relative_to(EXAMPLE)): path.read_bytes()
            for path in EXAMPLE.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        note = f"{message} at {datetime.now(UTC).isoformat()}\n".encode()
        sha = self.repository.commit({**files, "release.txt": note}, message)
        self.timeline.say(f"{sha[:12]} {message}")
        return sha

    async def deployment_of(self, sha: str) -> Any:
        """The deployment made from a commit, as soon as there is one."""

        async def look() -> Any:
            items = await self.testbed.get("/v1/deployments", project=self.project, per_page="20")
            for item in items:
                whole = await self.testbed.get(f"/v1/deployments/{item['id']}")
                if whole["git_sha"] == sha:
                    return whole
            return None

        return await eventually(look, lambda seen: seen is not None, 300)

    async def follow_build(self, deployment: str) -> None:
        """Print the build log as it is written, then waits for the end of the build."""
        async for message in self.testbed.stream(f"/v1/deployments/{deployment}/logs"):
            text = message.data.get("message", "") if isinstance(message.data, dict) else str(message.data)
            if text.strip():
                self.timeline.say(text[:160])
        done = await eventually(
            lambda: self.testbed.get(f"/v1/deployments/{deployment}"),
            lambda seen: seen["status"] not in ("pending", "building"),
            1800,
        )
        if done["status"] != "active":
            raise SystemExit(f"{deployment} ended {done['status']}: {done.get('error')}")
        self.timeline.say(f"{deployment} is {done['status']}: {done['message']}")

    async def follow_run(self, run: str) -> None:
        """Print the events of a run as they come."""
        async for message in self.testbed.stream(f"/v1/runs/{run}/events"):
            shown = {k: v for k, v in message.data.items() if k not in ("run_id", "timestamp")}
            self.timeline.say(f"{message.id:>3} {message.event:<16} {str(shown)[:130]}")

    async def show(self, *arguments: str) -> None:
        """A command and what it prints."""
        self.timeline.say(f"$ kubectl -n crews {' '.join(arguments)}")
        self.timeline.say(await self.testbed.kubectl(*arguments))

    async def play(self) -> None:
        """All steps."""
        step, say, testbed = self.timeline.step, self.timeline.say, self.testbed
        with step("Commit the LangGraph example and serve the repository"):
            first_sha = self.commit("Report on a topic")
            say(self.url)
        with step("Apply a Project that follows the branch main"):
            git = {"url": self.url, "ref": {"branch": "main"}, "interval": "2s", "suspend": False}
            say(await testbed.apply("Project", self.project, {"plan": "pro", "source": {"git": git}}))
        with step("Ask for a poll at once: an interrupted demo leaves a back-off"):
            requested = f"crewyard.dev/requestedAt={datetime.now(UTC).isoformat()}"
            await self.show("annotate", "--overwrite", "cproj", self.project, requested)
        with step("The commit becomes a Deployment"):
            first = await self.deployment_of(first_sha)
            say(f"{first['id']} {first['status']}")
        with step("Its image is built (the log, live)"):
            await self.follow_build(first["id"])
        with step("POST /v1/runs, and its events as they happen"):
            run = await testbed.post("/v1/runs", {"deployment": self.project, "input": {"topic": "tides"}})
            say(f"{run['id']} {run['status']}")
            await self.follow_run(run["id"])
        with step("Download what it left"):
            for artifact in await testbed.get(f"/v1/runs/{run['id']}/artifacts"):
                answer = await testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/{artifact['name']}")
                say(f"{artifact['name']} ({artifact['size']} bytes)")
                say(answer.body.decode()[:600])
        with step("A second commit: only the code changed"):
            second_sha = self.commit("Say it better")
            second = await self.deployment_of(second_sha)
            await self.follow_build(second["id"])
            earlier = await testbed.get(f"/v1/deployments/{first['id']}")
            say(f"{first['id']} is {earlier['status']}")
        with step("Roll back to the first"):
            back = await testbed.post(f"/v1/deployments/{first['id']}/rollback", {})
            say(f"{back['id']} is {back['status']}")
            await self.show("get", "cdep", f"--field-selector=spec.project={self.project}")
        with step("A Run made with kubectl, seen through the API"):
            name = f"run-kubectl-{datetime.now(UTC):%Y%m%d%H%M%S}"
            say(
                await testbed.apply(
                    "Run", name, {"project": self.project, "input": {"topic": "harbours"}}, "create"
                )
            )
            await testbed.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=240s")
            runs = await eventually(
                lambda: testbed.get("/v1/runs", project=self.project),
                lambda seen: any(item["id"] == f"run_{name[4:]}" and item["completed_at"] for item in seen),
                60,
            )
            for item in runs[:3]:
                say(f"{item['id']:<34} {item['status']:<10} {item['duration_ms']} ms")
            await self.show("get", "crun", f"--field-selector=status.project={self.project}")
        with step("Suspend the project, since the repository is served no longer"):
            await testbed.kubectl(
                "patch",
                "cproj",
                self.project,
                "--type=merge",
                "--patch",
                '{"spec":{"source":{"git":{"suspend":true}}}}',
            )


async def main() -> None:
    """Run the demo and print commands to inspect the result."""
    timeline = Timeline()
    testbed = await E2eTestbed.open()
    root = Path(os.environ["CREWYARD_STATE"]) / "data" / "demo"
    root.mkdir(parents=True, exist_ok=True)
    address, port = git_address()
    try:
        with GitServer(root, address, port) as server:
            await Demo(testbed, timeline, PROJECT, server).play()
    finally:
        await testbed.close()
    timeline.summary()
    print(
        '\nLook around:\n  eval "$(make -s env)"\n  kubectl -n crews get crewyard\n'
        f"  kubectl -n crews describe cproj {PROJECT}\n"
        '  curl -s -H "Authorization: Bearer $CREWYARD_API_KEY" $CREWYARD_URL/v1/runs\n'
        "Clean up: make down PURGE=1"
    )


if __name__ == "__main__":
    asyncio.run(main())
