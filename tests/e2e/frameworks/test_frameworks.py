"""The examples, and crews of every kind beside them: each framework's events, by themselves, with their data.

With the real packages. What lies beside an example goes into its project, where these are installed.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.daily import daily
from tests.e2e.frameworks.framework import CASES, EXAMPLES, ExampleDeployment, build, check_order, events_of
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import tree


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crewai(testbed) -> AsyncIterator[ExampleDeployment]:
    async for built in build(testbed, "crewai"):
        yield built


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def flow(crewai) -> ExampleDeployment:
    return await crewai.beside({**tree(EXAMPLES / "crewai-flow"), **tree(CASES / "crewai")})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def langgraph(testbed) -> AsyncIterator[ExampleDeployment]:
    async for built in build(testbed, "langgraph"):
        yield built


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def graphs(langgraph) -> ExampleDeployment:
    return await langgraph.beside({**tree(EXAMPLES / "langgraph"), **tree(CASES / "langgraph")})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def python(testbed) -> AsyncIterator[ExampleDeployment]:
    async for built in build(testbed, "python"):
        yield built


def model_files() -> dict[str, bytes]:
    return {f"model/{name}": data for name, data in tree(EXAMPLES / "model").items() if name.endswith(".py")}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agents(testbed) -> AsyncIterator[ExampleDeployment]:
    async for built in build(testbed, "agents", {**tree(CASES / "agents"), **model_files()}):
        yield built


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def llama_index(testbed) -> AsyncIterator[ExampleDeployment]:
    shared = {"scripted.py": tree(CASES / "agents")["scripted.py"], **model_files()}
    async for built in build(testbed, "llama-index", {**tree(CASES / "llama_index"), **shared}):
        yield built


async def test_crewai_crew_emits_agent_and_tool_events(crewai):
    """Slow: builds the many dependencies of CrewAI, which its tests share."""
    run, events = await crewai.run({"harbour": "Hamburg"})
    assert run["status"] == "succeeded", run
    facts = "depth 13.5 m, high water at 04:15"
    text = f"# Hamburg\n\nHamburg: {facts}. Mind the current."
    assert run["output"] == text
    check_order(run, events)
    researcher = {"agent": "Researcher", "task": "Find the depth and the next high water of Hamburg."}
    writer = {"agent": "Writer", "task": "Write a report on Hamburg for a skipper."}
    tool = {"agent": "Researcher", "tool": "tide_table"}
    assert events_of(events, "agent.", "tool.") == [
        ("agent.started", researcher),
        ("tool.called", {**tool, "input": {"harbour": "Hamburg"}}),
        ("tool.result", {**tool, "output": facts}),
        ("agent.completed", {**researcher, "output": f"Hamburg: {facts}"}),
        ("agent.started", writer),
        ("agent.completed", {**writer, "output": text}),
    ]
    usage = [data for _, data in events_of(events, "usage")]
    assert [data["model"] for data in usage] == ["scripted"] * 3
    assert all(data["prompt_tokens"] > 0 < data["completion_tokens"] for data in usage)
    assert all(data["duration_ms"] >= 0 for data in usage)
    assert [data["name"] for _, data in events_of(events, "artifact")] == ["report.md"]
    assert await crewai.artifact(run, "report.md") == text
    # No question to a terminal, no telemetry, no warning.
    assert events_of(events, "log") == []


@pytest.mark.nightly
async def test_crewai_crew_without_input_uses_its_default(crewai):
    run, events = await crewai.run({})
    assert run["output"].startswith("# Bristol"), run
    check_order(run, events)


def pilot(harbour: str, answer: str, *before: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Events of the pilot's work: the earlier ones, then one look into the table."""
    agent = {"agent": "Pilot", "task": f"Find the tide of {harbour}."}
    tool = {"agent": "Pilot", "tool": "tide_table"}
    found = "Bristol" if before else harbour
    return [
        ("agent.started", agent),
        *before,
        ("tool.called", {**tool, "input": {"harbour": found}}),
        ("tool.result", {**tool, "output": answer}),
        ("agent.completed", {**agent, "output": answer}),
    ]


TIDES = {
    "Bristol": '{"depth": 9.1, "high_water": "06:40"}',
    "Hamburg": '{"depth": 13.5, "high_water": "04:15"}',
    "Porto": '{"depth": 8.5, "high_water": "03:05"}',
}


@pytest.mark.nightly
async def test_crewai_flow_emits_events_of_its_crew(flow):
    run, events = await flow.run({"harbour": "Hamburg", "draught": 12.5})
    assert run["status"] == "succeeded", run
    # The second step has what the first one left in the state, and the input.
    assert run["output"] == {"harbour": "Hamburg", "spare": 1.0, "advice": "enter at 04:15"}
    check_order(run, events)
    assert events_of(events, "agent.", "tool.") == pilot("Hamburg", TIDES["Hamburg"])
    assert [data["model"] for _, data in events_of(events, "usage")] == ["scripted"] * 2
    assert await flow.artifact(run, "plan.md") == "# Hamburg\n\n1.0 m below the keel: enter at 04:15.\n"
    assert events_of(events, "log") == []


@pytest.mark.nightly
async def test_crewai_crew_object_with_failing_tool(flow):
    run, events = await flow.run({"harbour": "Atlantis"}, "passage.pilot:crew")
    assert (run["status"], run["output"]) == ("succeeded", {"depth": 9.1, "high_water": "06:40"})
    check_order(run, events)
    tool = {"agent": "Pilot", "tool": "tide_table"}
    attempt = [
        ("tool.called", {**tool, "input": {"harbour": "Atlantis"}}),
        ("tool.error", {**tool, "error": "the table does not have Atlantis"}),
    ]
    assert events_of(events, "agent.", "tool.") == pilot("Atlantis", TIDES["Bristol"], *attempt * 3)


@pytest.mark.nightly
async def test_crewai_agent_failure(flow):
    run, events = await flow.run({}, "cases:Silent")
    assert (run["status"], run["error"]["reason"]) == ("failed", "CrewError")
    assert run["error"]["message"].startswith("ConnectionError: the model is silent\n")
    check_order(run, events)
    mate = {"agent": "Mate", "task": "Sail home."}
    attempt = [("agent.started", mate), ("agent.error", {**mate, "error": "the model is silent"})]
    assert events_of(events, "agent.", "tool.") == attempt * 2


@pytest.mark.nightly
async def test_crewai_parallel_async_and_nested_crews(flow):
    run, events = await flow.run({}, "cases:Fleet")
    assert run["status"] == "succeeded", run
    harbours = ["Hamburg", "Bristol", "Porto", "Hamburg"]
    tides = [TIDES[harbour] for harbour in harbours]
    assert run["output"] == tides
    check_order(run, events)
    seen = events_of(events, "agent.", "tool.")
    # Two agents of one role whose tools fail alike at the same time: nothing is missing, nothing comes twice.
    tool = {"agent": "Bosun", "tool": "anchor"}
    attempt = [("tool.called", {**tool, "input": {}}), ("tool.error", {**tool, "error": "no anchorage"})]
    both = []
    for side in ("east", "west"):
        agent = {"agent": "Bosun", "task": f"Anchor in the {side}."}
        ends = {**agent, "output": "adrift"}
        both += [("agent.started", agent), *attempt * 3, ("agent.completed", ends)]
    assert sorted(map(repr, seen[: len(both)])) == sorted(map(repr, both))
    after = [event for harbour, tide in zip(harbours, tides, strict=True) for event in pilot(harbour, tide)]
    assert seen[len(both) :] == after


async def test_langgraph_graph_emits_node_and_tool_events(langgraph):
    """Slow: builds the dependencies of LangGraph, which its tests share."""
    run, events = await langgraph.run({"topic": "harbours"})
    assert run["status"] == "succeeded", run
    questions = ["What are harbours?", "Who works in harbours?", "What do harbours make?"]
    assert run["output"]["questions"] == questions
    assert run["output"]["report"] == "artifacts/report.md"
    check_order(run, events)

    def step(agent: str, number: int) -> dict[str, Any]:
        return {"agent": agent, "task": f"step {number} of report"}

    seen = events_of(events, "agent.", "tool.", "usage", "progress")
    assert [kind for kind, _ in seen] == [
        *("agent.started", "usage", "agent.completed"),
        *("agent.started", "tool.called", "tool.result", "progress", "agent.completed") * 3,
        *("agent.started", "agent.completed"),
    ]
    assert seen[1][1]["model"] == "scripted"
    assert seen[1][1]["duration_ms"] >= 0
    assert seen[0][1] == step("plan", 1)
    assert seen[2][1] == {**step("plan", 1), "output": {"topic": "harbours", "questions": questions}}
    tool = {"agent": "research", "tool": "look_up"}
    assert seen[4][1] == {**tool, "input": {"question": questions[0]}}
    found = seen[5][1].pop("output")
    assert seen[5][1] == tool
    assert seen[7][1] == {**step("research", 2), "output": {"findings": [f"**{questions[0]}** {found}"]}}
    assert seen[-1][1] == {**step("write", 5), "output": {"report": "artifacts/report.md"}}
    assert [data["name"] for _, data in events_of(events, "artifact")] == ["report.md"]
    assert (await langgraph.artifact(run, "report.md")).startswith("# Harbours\n")


@pytest.mark.nightly
async def test_crewai_human_input_is_answered(flow):
    """Slow: builds the packages of CrewAI if it is the first of their tests."""
    testbed = flow.testbed
    posted = await testbed.post("/v1/runs", {"deployment": flow.deployment, "entrypoint": "cases:reviewed"})
    path = f"/v1/runs/{posted['id']}"

    async def answer(value: str, request: str) -> None:
        await eventually(
            lambda: testbed.get(path),
            lambda seen: [one["request_id"] for one in seen.get("input_requests", ())] == [request],
            120,
        )
        sent = await testbed.call("POST", f"{path}/inputs/{request}", {"value": value})
        assert sent.status == 200, sent.body

    await answer("Name the lights.", "q1")
    # An empty answer accepts what the agent wrote.
    await answer("", "q2")
    done = await eventually(lambda: testbed.get(path), lambda seen: seen["completed_at"] is not None, 600)
    assert (done["status"], done["output"]) == ("succeeded", "with the lights")
    asked = events_of(await testbed.events(posted["id"]), "input.")
    assert [kind for kind, _ in asked] == ["input.requested", "input.received"] * 2


@pytest.mark.nightly
async def test_langgraph_uncompiled_builder(graphs):
    run, events = await graphs.run({"question": "What are harbours?"}, "cases:builder")
    found = "Places where something large is put together from many parts."
    assert (run["status"], run["output"]["answer"]) == ("succeeded", found)
    check_order(run, events)
    agent, tool = {"agent": "answer", "task": "step 1"}, {"agent": "answer", "tool": "look_up"}
    assert events_of(events, "agent.", "tool.") == [
        ("agent.started", agent),
        ("tool.called", {**tool, "input": {"question": "What are harbours?"}}),
        ("tool.result", {**tool, "output": found}),
        ("agent.completed", {**agent, "output": {"answer": found}}),
    ]


@pytest.mark.nightly
async def test_langgraph_async_node_and_tool(graphs):
    question = "Who is there?"
    run, events = await graphs.run({"messages": [{"role": "user", "content": question}]}, "cases:waiting")
    assert run["status"] == "succeeded", run
    assert [message["content"] for message in run["output"]["messages"]] == [question, "", "Argo hears you"]
    check_order(run, events)
    watch, radio = ({"agent": name, "task": question} for name in ("watch", "radio"))
    tool = {"agent": "radio", "tool": "hail"}
    seen = events_of(events, "agent.", "tool.")
    outputs = [data.pop("output")["messages"] for kind, data in seen if kind == "agent.completed"]
    assert seen == [
        ("agent.started", watch),
        ("agent.completed", watch),
        ("agent.started", radio),
        ("tool.called", {**tool, "input": {"ship": "Argo"}}),
        ("tool.result", {**tool, "output": "Argo hears you"}),
        ("agent.completed", radio),
    ]
    assert [call["name"] for call in outputs[0][0]["tool_calls"]] == ["hail"]
    assert [message["content"] for message in outputs[1]] == ["Argo hears you"]


@pytest.mark.nightly
async def test_langgraph_node_fails_with_its_tool(graphs):
    run, events = await graphs.run({}, "cases:failing")
    assert (run["status"], run["error"]["reason"]) == ("failed", "CrewError")
    check_order(run, events)
    error = "ValueError: no line of 40 m"
    assert run["error"]["message"].startswith(f"{error}\n")
    agent, tool = {"agent": "measure", "task": "step 1"}, {"agent": "measure", "tool": "sound"}
    assert events_of(events, "agent.", "tool.") == [
        ("agent.started", agent),
        ("tool.called", {**tool, "input": {"depth": 40}}),
        ("tool.error", {**tool, "error": error}),
        ("agent.error", {**agent, "error": error}),
    ]


@pytest.mark.nightly
async def test_langchain_runnable_with_async_part(graphs):
    run, events = await graphs.run({"question": "Who works here?"}, "cases:runnable")
    found = "Crews: people with different trades who share one plan."
    assert (run["status"], run["output"]) == ("succeeded", {"shouted": found.upper()})
    check_order(run, events)
    tool = {"agent": None, "tool": "look_up"}
    assert events_of(events, "agent.", "tool.") == [
        ("tool.called", {**tool, "input": "Who works here?"}),
        ("tool.result", {**tool, "output": found}),
    ]


FACTORIES = {
    "saved": ["run", None],
    "tides": "small",
    "berth": "any",
    "by_config": ["thread_id"],
    "by_runtime": "threads.create_run",
    "by_coroutine": ["run", None],
    "entered": ["run", None],
    "entered_at_once": ["run", None],
}


@pytest.mark.parametrize("name", daily(FACTORIES, ("by_config", "entered")))
async def test_langgraph_config_context_and_factories(graphs, name):
    run, events = await graphs.run({"answer": ""}, f"factories:{name}")
    assert (run["status"], run["output"]) == ("succeeded", {"answer": FACTORIES[name]}), run
    check_order(run, events)
    left = [data["message"] for _, data in events_of(events, "log")]
    assert left == (["left"] if name.startswith("entered") else [])


WAITING = [("returning", "'Which harbour?'"), ("stopping", "breakpoint before node")]


async def test_a_person_answers_the_interrupts_of_a_graph(graphs):
    body = {"deployment": graphs.deployment, "input": {}, "entrypoint": "factories:asking"}
    run = (await graphs.testbed.post("/v1/runs", body))["id"]
    path = f"/v1/runs/{run}"
    shown = await graphs.testbed.get(path)
    while shown["completed_at"] is None:
        for request in shown.get("input_requests", ()):
            answer = {"value": request["prompt"].lower()}
            await graphs.testbed.call("POST", f"{path}/inputs/{request['request_id']}", answer)
        shown = await eventually(
            lambda: graphs.testbed.get(path),
            lambda seen: seen["completed_at"] is not None or seen.get("input_requests"),
            120,
        )
    # The subgraph returns the answers that it was given too, and the reducer adds them again.
    assert (shown["status"], sorted(shown["output"]["answers"])) == (
        "succeeded",
        ["again 0?", "again 1?", "first?", "first?", "inner?", "second?", "second?"],
    )


@pytest.mark.parametrize(("name", "word"), [WAITING[0], pytest.param(*WAITING[1], marks=pytest.mark.nightly)])
async def test_langgraph_graph_that_waits_fails(graphs, name, word):
    run, events = await graphs.run({"answer": ""}, f"factories:{name}")
    assert (run["status"], run["error"]["reason"]) == ("failed", "InputRequired"), run
    assert word in run["error"]["message"]
    check_order(run, events)


async def test_plain_function_emits_events(python):
    """Slow: builds the example that its tests share."""
    run, events = await python.run({"name": "yard"})
    assert (run["status"], run["output"]) == ("succeeded", {"greeting": "hello, yard"})
    check_order(run, events)
    assert events_of(events, "agent.", "tool.", "usage") == []
    assert events_of(events, "greeting") == [("greeting", {"name": "yard"})]
    assert [data["message"] for _, data in events_of(events, "log")] == ["hello, yard"]
    assert await python.artifact(run, "greeting.txt") == "hello, yard\n"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "entrypoint",
    ["sdk:agent", "pydantic_agent:agent", "smol:agent", "autogen_team:team", "adk_agent:agent"],
)
async def test_agents_with_a_prompt_emit_agent_and_tool_events(agents, entrypoint):
    """Slow: builds the packages of five frameworks once."""
    run, events = await agents.run({"prompt": "When is high water?"}, entrypoint)
    assert run["status"] == "succeeded", run
    assert run["output"].startswith("A scripted answer to: "), run
    check_order(run, events)
    task = None if entrypoint.startswith("pydantic") else "When is high water?"
    agent, tool = {"agent": "Pilot", "task": task}, {"agent": "Pilot", "tool": "tide_table"}
    assert events_of(events, "agent.", "tool.") == [
        ("agent.started", agent),
        ("tool.called", {**tool, "input": {"harbour": "example"}}),
        ("tool.result", {**tool, "output": "high water of example at 04:15"}),
        ("agent.completed", {**agent, "output": run["output"]}),
    ]
    usage = [data for _, data in events_of(events, "usage")]
    assert len(usage) == 2
    assert all(data["model"] and data["prompt_tokens"] > 0 < data["completion_tokens"] for data in usage)
    # smolagents and AutoGen do not say when a call starts.
    is_timed = not entrypoint.startswith(("smol", "autogen"))
    assert [data.get("duration_ms", -1) >= 0 for data in usage] == [is_timed] * 2


LLAMA_QUESTION = "When is high water of Kiel?"


@pytest.mark.nightly
@pytest.mark.parametrize("entrypoint", ["tides:agent", "tides:Tides"])
async def test_llama_index_agent_and_workflow(llama_index, entrypoint):
    """Slow: builds the packages of LlamaIndex."""
    of_workflow = entrypoint == "tides:Tides"
    given = {"harbour": "Kiel"} if of_workflow else {"prompt": LLAMA_QUESTION}
    run, events = await llama_index.run(given, entrypoint)
    answer = f"A scripted answer to: {LLAMA_QUESTION}"
    assert (run["status"], run["output"]) == ("succeeded", {"answer": answer} if of_workflow else answer), run
    check_order(run, events)
    step, agent = {"agent": "look", "task": "StartEvent"}, {"agent": "Pilot", "task": LLAMA_QUESTION}
    tool = {"agent": "Pilot", "tool": "tide_table"}
    expected = [
        ("agent.started", agent),
        ("tool.called", {**tool, "input": {"harbour": "example"}}),
        ("tool.result", {**tool, "output": "high water of example at 04:15"}),
        ("agent.completed", {**agent, "output": answer}),
    ]
    if of_workflow:
        ended = ("agent.completed", {**step, "output": {"answer": answer}})
        expected = [("agent.started", step), *expected, ended]
    assert events_of(events, "agent.", "tool.") == expected
    usage = [data for _, data in events_of(events, "usage")]
    assert [data["model"] for data in usage] == ["gpt-4o-mini"] * 2
    assert all(data["prompt_tokens"] > 0 <= data["duration_ms"] for data in usage)
