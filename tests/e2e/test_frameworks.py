"""The examples from upload to artifact: each framework's events, by themselves, with their data."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.e2e.conftest import archive, upload
from tests.e2e.yard import Message, Yard, eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDS = {"agent.started": ("agent.completed", "agent.error"), "tool.called": ("tool.result", "tool.error")}


@dataclass
class Built:
    """An example, uploaded from the tree and built."""

    yard: Yard
    project: str
    deployment: dict[str, Any]

    async def run(self, given: dict[str, Any]) -> tuple[dict[str, Any], list[Message]]:
        """A finished run and all its events."""
        posted = await self.yard.post("/v1/runs", {"deployment": self.project, "input": given})
        events = await self.yard.events(posted["id"])
        done = await eventually(
            lambda: self.yard.get(f"/v1/runs/{posted['id']}"),
            lambda seen: seen["completed_at"] is not None,
            30,
        )
        return done, events

    async def artifact(self, run: dict[str, Any], name: str) -> str:
        """What a run left under that name."""
        answer = await self.yard.call("GET", f"/v1/runs/{run['id']}/artifacts/{name}")
        assert answer.status == 200, answer.body
        return answer.body.decode()


async def build(yard: Yard, example: str) -> AsyncIterator[Built]:
    project = f"e2e-{example}-{secrets.token_hex(4)}"
    root = EXAMPLES / example
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    await yard.post("/v1/projects", {"name": project})
    try:
        context = await upload(yard, project, archive(files))
        made = await yard.post("/v1/deployments", {"project": project, "build_context_url": context})
        done = await eventually(
            lambda: yard.get(f"/v1/deployments/{made['id']}"),
            lambda seen: seen["status"] not in ("pending", "building"),
            900,  # CrewAI's packages, when nothing is cached
            pause=0.5,
        )
        assert done["status"] == "active", done
        yield Built(yard, project, done)
    finally:
        await yard.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crewai(yard) -> AsyncIterator[Built]:
    async for built in build(yard, "crewai"):
        yield built


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def langgraph(yard) -> AsyncIterator[Built]:
    async for built in build(yard, "langgraph"):
        yield built


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def python(yard) -> AsyncIterator[Built]:
    async for built in build(yard, "python"):
        yield built


def told(events: list[Message], *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of some kinds in their order, without what every event has."""
    return [
        (event.event, {key: value for key, value in event.data.items() if key not in ("run_id", "timestamp")})
        for event in events
        if event.event.startswith(kinds)
    ]


def check_order(run: dict[str, Any], events: list[Message]) -> None:
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


async def test_a_crewai_crew_tells_what_its_agents_and_tools_do(crewai):
    run, events = await crewai.run({"harbour": "Hamburg"})
    assert run["status"] == "succeeded", run
    facts = "depth 13.5 m, high water at 04:15"
    text = f"# Hamburg\n\nHamburg: {facts}. Mind the current."
    assert run["output"] == text
    check_order(run, events)
    researcher = {"agent": "Researcher", "task": "Find the depth and the next high water of Hamburg."}
    writer = {"agent": "Writer", "task": "Write a report on Hamburg for a skipper."}
    tool = {"agent": "Researcher", "tool": "tide_table"}
    assert told(events, "agent.", "tool.") == [
        ("agent.started", researcher),
        ("tool.called", {**tool, "input": {"harbour": "Hamburg"}}),
        ("tool.result", {**tool, "output": facts}),
        ("agent.completed", {**researcher, "output": f"Hamburg: {facts}"}),
        ("agent.started", writer),
        ("agent.completed", {**writer, "output": text}),
    ]
    usage = [data for _, data in told(events, "usage")]
    assert [data["model"] for data in usage] == ["scripted"] * 3
    assert all(data["prompt_tokens"] > 0 < data["completion_tokens"] for data in usage)
    assert [data["name"] for _, data in told(events, "artifact")] == ["report.md"]
    assert await crewai.artifact(run, "report.md") == text
    # No question to a terminal, no telemetry, no warning.
    assert told(events, "log") == []


async def test_a_crewai_crew_without_an_input_takes_its_own(crewai):
    run, events = await crewai.run({})
    assert run["output"].startswith("# Bristol"), run
    check_order(run, events)


async def test_a_langgraph_graph_tells_what_its_nodes_and_tools_do(langgraph):
    run, events = await langgraph.run({"topic": "harbours"})
    assert run["status"] == "succeeded", run
    questions = ["What are harbours?", "Who works in harbours?", "What do harbours make?"]
    assert run["output"]["questions"] == questions
    assert run["output"]["report"] == "artifacts/report.md"
    check_order(run, events)

    def step(agent: str, number: int) -> dict[str, Any]:
        return {"agent": agent, "task": f"step {number} of report"}

    seen = told(events, "agent.", "tool.", "usage", "progress")
    assert [kind for kind, _ in seen] == [
        *("agent.started", "usage", "agent.completed"),
        *("agent.started", "tool.called", "tool.result", "progress", "agent.completed") * 3,
        *("agent.started", "agent.completed"),
    ]
    assert seen[1][1]["model"] == "scripted"
    assert seen[0][1] == step("plan", 1)
    assert seen[2][1] == {**step("plan", 1), "output": {"topic": "harbours", "questions": questions}}
    tool = {"agent": "research", "tool": "look_up"}
    assert seen[4][1] == {**tool, "input": {"question": questions[0]}}
    found = seen[5][1].pop("output")
    assert seen[5][1] == tool
    assert seen[7][1] == {**step("research", 2), "output": {"findings": [f"**{questions[0]}** {found}"]}}
    assert seen[-1][1] == {**step("write", 5), "output": {"report": "artifacts/report.md"}}
    assert [data["name"] for _, data in told(events, "artifact")] == ["report.md"]
    assert (await langgraph.artifact(run, "report.md")).startswith("# Harbours\n")


async def test_a_plain_function_tells_what_it_emits(python):
    run, events = await python.run({"name": "yard"})
    assert (run["status"], run["output"]) == ("succeeded", {"greeting": "hello, yard"})
    check_order(run, events)
    assert told(events, "agent.", "tool.", "usage") == []
    assert told(events, "greeting") == [("greeting", {"name": "yard"})]
    assert [data["message"] for _, data in told(events, "log")] == ["hello, yard"]
    assert await python.artifact(run, "greeting.txt") == "hello, yard\n"
