"""An example from upload to events, and how its events must lie. Called by test_frameworks.py."""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.testbed import E2eTestbed, StreamMessage, eventually
from tests.e2e.upload_project import UploadProject, tree

EXAMPLES = Path(__file__).parents[3] / "examples"
CASES = Path(__file__).parent
ENDS = {"agent.started": ("agent.completed", "agent.error"), "tool.called": ("tool.result", "tool.error")}


@dataclass
class ExampleDeployment:
    """A deployment that is built, and its project."""

    testbed: E2eTestbed
    project: str
    deployment: str

    async def run(
        self, given: dict[str, Any], entrypoint: str | None = None
    ) -> tuple[dict[str, Any], list[StreamMessage]]:
        """A finished run and all its events."""
        body = {"deployment": self.deployment, "input": given}
        posted = await self.testbed.post(
            "/v1/runs", {**body, **({"entrypoint": entrypoint} if entrypoint else {})}
        )
        events = await self.testbed.events(posted["id"])
        done = await eventually(
            lambda: self.testbed.get(f"/v1/runs/{posted['id']}"),
            lambda seen: seen["completed_at"] is not None,
            120,
        )
        return done, events

    async def artifact(self, run: dict[str, Any], name: str) -> str:
        """What a run left under that name."""
        answer = await self.testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/{name}")
        assert answer.status == 200, answer.body
        return answer.body.decode()

    async def beside(self, files: Mapping[str, bytes]) -> "ExampleDeployment":
        """Other code in the same project, so that it lies on the packages that are installed there."""
        upload_project = UploadProject(self.testbed, self.project)
        return ExampleDeployment(
            self.testbed, self.project, await upload_project.deploy_and_wait(files, preview={})
        )


async def build(
    testbed: E2eTestbed, example: str, files: Mapping[str, bytes] | None = None
) -> AsyncIterator[ExampleDeployment]:
    """An example as it is in the tree, or other files; the project is deleted at the end."""
    project = f"e2e-{example}-{secrets.token_hex(4)}"
    await testbed.post("/v1/projects", {"name": project})
    try:
        upload_project = UploadProject(testbed, project)
        deployment = await upload_project.deploy(files or tree(EXAMPLES / example))
        done = await upload_project.wait_finished(
            deployment, 900, 0.5
        )  # CrewAI's packages, when nothing is cached
        assert done["status"] == "active", done
        yield ExampleDeployment(testbed, project, deployment)
    finally:
        await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")


def events_of(events: list[StreamMessage], *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of some kinds in their order, without what every event has."""
    return [
        (event.event, {key: value for key, value in event.data.items() if key not in ("run_id", "timestamp")})
        for event in events
        if event.event.startswith(kinds)
    ]


def check_order(run: dict[str, Any], events: list[StreamMessage]) -> None:
    """Ids without gaps, one start and one end of the run, all else between; each start has its end, later."""
    kinds = [event.event for event in events]
    assert [event.id for event in events] == [str(number) for number in range(1, len(events) + 1)]
    assert (kinds[0], kinds[-1]) == (
        "run.started",
        f"run.{'completed' if run['status'] == 'succeeded' else 'failed'}",
    )
    assert [kind for kind in kinds if kind.startswith("run.")] == [kinds[0], kinds[-1]]
    assert all(event.data["run_id"] == run["id"] for event in events)
    for start, ends in ENDS.items():
        is_open: list[tuple[Any, ...]] = []
        for event in events:
            what = tuple(event.data.get(key) for key in ("agent", "task", "tool"))
            if event.event == start:
                is_open.append(what)
            elif event.event in ends:
                assert what in is_open, f"{event.event} of {what} has no {start}"
                is_open.remove(what)
        assert is_open == [], f"without an end: {is_open}"
