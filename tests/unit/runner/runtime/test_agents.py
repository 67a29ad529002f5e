"""Agents that take a prompt: packages with the shape of the frameworks.

tests/e2e/frameworks uses the real ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from runner.crewyard_runtime.frameworks.agents.prompts import prompt_of
from tests.unit.runner.runtime.measured import MEASURED, with_measured

SDK = {
    "agents/__init__.py": "from .agent import Agent\nfrom .run import Runner\n",
    "agents/agent.py": """
class Agent:
    def __init__(self, name, tools=(), handoff=None, model="scripted"):
        self.name, self.tools, self.handoff, self.model = name, tools, handoff, model
""",
    "agents/models/default_models.py": "def get_default_model():\n    return 'default'\n",
    "agents/result.py": """
class RunResult:
    def __init__(self, final_output):
        self.final_output, self.agent = final_output, object()
""",
    "agents/lifecycle.py": """
class RunHooksBase:
    async def on_agent_start(self, context, agent): pass
""",
    "agents/run.py": """
import asyncio
from types import SimpleNamespace as Some
from . import lifecycle
from .result import RunResult
class Runner:
    @classmethod
    async def run(cls, starting_agent, input, *, hooks=None):
        return await work(starting_agent, input, hooks)
    @classmethod
    def run_sync(cls, starting_agent, input, *, hooks=None):
        return asyncio.run(cls.run(starting_agent, input, hooks=hooks))
    @classmethod
    def run_streamed(cls, starting_agent, input, *, hooks=None):
        return Streaming(work(starting_agent, input, hooks))
class Streaming:
    def __init__(self, run):
        self.run = run
    async def stream_events(self):
        task = asyncio.create_task(self.run)
        yield "event"
        self.final_output = (await task).final_output
async def work(agent, input, hooks):
    await hooks.on_agent_start(None, agent)
    usage = Some(total_tokens=3, input_tokens=2, output_tokens=1)
    await hooks.on_llm_start(None, agent, None, [])
    await hooks.on_llm_end(None, agent, Some(usage=usage))
    for number, tool in enumerate(agent.tools):
        context = Some(tool_call_id=str(number), tool_arguments='{"x": 1}')
        await hooks.on_tool_start(context, agent, Some(name=tool.__name__))
        await hooks.on_tool_end(context, agent, Some(name=tool.__name__), tool())
    if agent.handoff:
        await hooks.on_handoff(None, agent, agent.handoff)
        agent = agent.handoff
        await hooks.on_agent_start(None, agent)
    await hooks.on_agent_end(None, agent, f"{input}!")
    return RunResult(f"{input}!")
""",
}
CREW = """
import os
from agents import Agent, Runner
def tide():
    return "04:15"
def broken():
    raise ValueError("no table")
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")
def unreadable():
    raise Mute
pilot = Agent("Pilot", [tide], Agent("Mate"))
failing = Agent("Pilot", [broken])
default = Agent("Pilot", model=None)
mute = Agent("Pilot", [unreadable])
def kickoff():
    return [Runner.run_sync(pilot, "Ahoy"), os.environ["OPENAI_AGENTS_DISABLE_TRACING"]][0]
def several():
    return {"said": [Runner.run_sync(pilot, "Ahoy"), (1, None)]}
class Own:
    seen = []
    def __getattr__(self, name):
        async def call(*arguments):
            self.seen.append(name)
        return call
def observed():
    Runner.run_sync(pilot, "Ahoy", hooks=Own())
    return Own.seen
async def streamed(inputs):
    result = Runner.run_streamed(pilot if inputs["works"] else failing, "Ahoy")
    async for event in result.stream_events():
        assert event == "event"
    return result.final_output
"""
OPENTELEMETRY = """
import contextlib
class Span: pass
class Tracer: pass
class TracerProvider: pass
INVALID_SPAN_CONTEXT = None
current = []
def get_current_span(context=None):
    return current[-1] if current else None
@contextlib.contextmanager
def use_span(span, end_on_exit=False, record_exception=True):
    current.append(span)
    try:
        yield span
    except Exception as error:
        if record_exception:
            span.record_exception(error)
        raise
    finally:
        current.pop()
        if end_on_exit:
            span.end()
"""
PYDANTIC_AI = {
    "opentelemetry/trace.py": OPENTELEMETRY,
    "pydantic_ai/models/instrumented.py": """
class InstrumentationSettings:
    def __init__(self, tracer_provider):
        self.tracer = tracer_provider.get_tracer("pydantic-ai")
""",
    "pydantic_ai/run.py": """
class AgentRunResult:
    def __init__(self, output):
        self.output, self.agent = output, object()
""",
    "pydantic_ai/agent.py": """
from .run import AgentRunResult
class Agent:
    def __init__(self, name, tools=()):
        self.name, self.tools = name, tools
    @staticmethod
    def instrument_all(settings):
        Agent.settings = settings
    def run_sync(self, prompt):
        start = self.settings.tracer.start_as_current_span
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self.name}
        with start("invoke_agent", attributes=named) as run:
            with start("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
                span.set_attributes({"gen_ai.request.model": "scripted", "gen_ai.usage.input_tokens": 2})
                span.set_attribute("gen_ai.usage.output_tokens", 1)
            for tool in self.tools:
                named = {"gen_ai.tool.name": tool.__name__, "gen_ai.tool.call.arguments": '{"x": 1}'}
                with start("execute_tool", attributes=named) as span:
                    span.set_attribute("gen_ai.tool.call.result", tool())
            run.set_attribute("final_result", f"{prompt}!")
            return AgentRunResult(f"{prompt}!")
""",
    "pydantic_ai/__init__.py": "from .agent import Agent\n",
}
PYDANTIC_CREW = CREW[: CREW.index("pilot =")].replace(
    "agents import Agent, Runner", "pydantic_ai import Agent"
) + (
    'pilot = Agent("Pilot", [tide])\nfailing = Agent("Pilot", [broken])\n'
    'mute = Agent("Pilot", [unreadable])\n'
    'def kickoff():\n    return pilot.run_sync("Ahoy")\n'
    "def deferred():\n"
    "    start, name = Agent.settings.tracer.start_as_current_span, 'execute_tool'\n"
    "    try:\n"
    "        with start(name, attributes={'gen_ai.tool.name': 'tide'}, record_exception=False):\n"
    "            raise ValueError('it waits for an approval')\n"
    "    except ValueError:\n"
    "        return 'approved'\n"
)
SMOLAGENTS = {
    "smolagents/__init__.py": "from .agents import CodeAgent, Tool\n",
    "smolagents/agents.py": """
import threading
from types import SimpleNamespace as Some
class Tool:
    inputs = {"x": {}}
    def __init__(self, function):
        self.name, self.function = function.__name__, function
    def __call__(self, *arguments, sanitize_inputs_outputs=False, **named):
        return self.function()
class FinalAnswerStep:
    def __init__(self, output):
        self.output = output
class RunResult:
    def __init__(self, output):
        self.output = output
class MultiStepAgent:
    def __init__(self, name, tools=()):
        self.name, self.model = name, Some(model_id="scripted")
        self.tools = [Tool(tool) for tool in tools]
    def run(self, task, full=False):
        answer = list(self._run_stream(task=task))[-1].output
        return RunResult(answer) if full else answer
    def _run_stream(self, task):
        self._finalize_step(Some(token_usage=Some(input_tokens=2, output_tokens=1)))
        for tool in self.tools:
            yield self._in_thread(tool)
        Tool(final_answer)(task)
        yield FinalAnswerStep(f"{task}!")
    def _in_thread(self, tool):
        errors = []
        def work():
            try:
                tool(1, sanitize_inputs_outputs=True)
            except Exception as error:
                errors.append(error)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
    def _finalize_step(self, memory_step): pass
class CodeAgent(MultiStepAgent): pass
def final_answer(): pass
""",
}
SMOLAGENTS_CREW = CREW[: CREW.index("pilot =")].replace(
    "agents import Agent, Runner", "smolagents import CodeAgent as Agent"
) + (
    'pilot = Agent("Pilot", [tide])\nfailing = Agent("Pilot", [broken])\n'
    'mute = Agent("Pilot", [unreadable])\n'
    'def kickoff():\n    assert os.environ["HF_HUB_DISABLE_TELEMETRY"]\n    return pilot.run("Ahoy", True)\n'
    'def streamed():\n    return next(step.output for step in pilot._run_stream("Ahoy") if step)\n'
)
AUTOGEN = {
    "autogen_core/__init__.py": "",
    "autogen_core/tools/__init__.py": "from ._base import BaseTool\n",
    "autogen_core/tools/_base.py": """
class BaseTool:
    def __init__(self, function):
        self.name, self.function = function.__name__, function
    async def run_json(self, args, token, call_id=None):
        return self.function()
""",
    "autogen_agentchat/__init__.py": "",
    "autogen_agentchat/base.py": """
class TaskResult:
    def __init__(self, messages):
        self.messages = messages
class Response:
    def __init__(self, chat_message):
        self.chat_message = chat_message
class TextMessage:
    def __init__(self, content):
        self.content = content
""",
    "autogen_agentchat/agents/__init__.py": """
import logging
from autogen_core.tools import BaseTool
from ..base import Response, TextMessage
from ._base_chat_agent import BaseChatAgent
class LLMCallEvent:
    kwargs = {"response": {"model": "scripted"}, "prompt_tokens": 2, "completion_tokens": 1}
    def __str__(self): raise AssertionError("no one asked for this record")
class AssistantAgent(BaseChatAgent):
    def __init__(self, name, tools=()):
        self.name, self.tools = name, [BaseTool(tool) for tool in tools]
    async def on_messages(self, messages, token):
        async for item in self.on_messages_stream(messages, token):
            last = item
        return last
    async def on_messages_stream(self, messages, token):
        logging.getLogger("autogen_core.events").info(LLMCallEvent())
        for tool in self.tools:
            await tool.run_json({"x": 1}, None)
            yield "called"
        yield Response(TextMessage(f"{messages[-1].content}!"))
class Custom(BaseChatAgent):
    name = "Custom"
    async def on_messages(self, messages, token):
        return Response(TextMessage("own"))
""",
    "autogen_agentchat/agents/_base_chat_agent.py": """
from abc import ABC, abstractmethod
from ..base import TaskResult, TextMessage
class BaseChatAgent(ABC):
    @abstractmethod
    async def on_messages(self, messages, token): ...
    async def on_messages_stream(self, messages, token):
        yield await self.on_messages(messages, token)
    async def run(self, *, task):
        return TaskResult([(await self.on_messages([TextMessage(task)], None)).chat_message])
""",
}
AUTOGEN_CREW = CREW[: CREW.index("pilot =")].replace(
    "agents import Agent, Runner", "autogen_agentchat.agents import AssistantAgent as Agent, Custom"
) + (
    "from autogen_agentchat.base import TextMessage\n"
    'pilot = Agent("Pilot", [tide])\nfailing = Agent("Pilot", [broken])\n'
    'mute = Agent("Pilot", [unreadable])\ncustom = Custom()\n'
    'async def kickoff():\n    return await pilot.run(task="Ahoy")\n'
    "async def team():\n"
    '    streams = [a.on_messages_stream([TextMessage("Ahoy")], None) for a in (pilot, custom)]\n'
    "    return [[type(item).__name__ async for item in stream] for stream in streams]\n"
)


def reported(api: Any) -> list[tuple[str, Any]]:
    return with_measured([(event["type"], event["data"]) for event in api.events if event["type"] != "log"])


def lay(pod: Any, packages: dict[str, str], crew: str) -> None:
    for path, code in packages.items():
        pod.crew(code, path)
    pod.crew(crew)


UNTIMED = ("usage", {"model": "scripted", "prompt_tokens": 2, "completion_tokens": 1})
TIMED = ("usage", {**UNTIMED[1], "duration_ms": MEASURED})
TOOL = {"agent": "Pilot", "tool": "tide"}


def sdk_events(task: str) -> list[tuple[str, Any]]:
    pilot, mate = ({"agent": name, "task": task} for name in ("Pilot", "Mate"))
    return [
        ("agent.started", pilot),
        TIMED,
        ("tool.called", {**TOOL, "input": {"x": 1}}),
        ("tool.result", {**TOOL, "output": "04:15"}),
        ("agent.completed", {**pilot, "output": {"handoff": "Mate"}}),
        ("agent.started", mate),
        ("agent.completed", {**mate, "output": f"{task}!"}),
    ]


@pytest.mark.parametrize("entrypoint", ["main:pilot", "main:kickoff"])
async def test_an_agent_of_the_openai_sdk(pod: Any, api: Any, entrypoint: str) -> None:
    lay(pod, SDK, CREW)
    api.entrypoint, api.input = entrypoint, {"prompt": "Ahoy"}
    await pod.run()
    assert api.result["output"] == "Ahoy!"
    assert reported(api) == sdk_events("Ahoy")


async def test_results_in_a_list_or_a_dict_are_outputs(pod: Any, api: Any) -> None:
    lay(pod, SDK, CREW)
    api.entrypoint = "main:several"
    await pod.run()
    assert api.result["output"] == {"said": ["Ahoy!", [1, None]]}


@pytest.mark.parametrize("entrypoint", ["main:pilot", "main:kickoff"])
async def test_a_tool_of_the_openai_sdk_that_waits_for_approval(pod: Any, api: Any, entrypoint: str) -> None:
    result = """
from types import SimpleNamespace as Some
class RunResult:
    final_output, interruptions = None, [Some(tool_name="delete"), Some(tool_name="delete")]
    def __init__(self, final_output): pass
"""
    lay(pod, {**SDK, "agents/result.py": result}, CREW)
    api.entrypoint, api.input = entrypoint, {"prompt": "Ahoy"}
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "InputRequired")
    assert "asked a person 'delete'," in api.result["message"]


@pytest.mark.parametrize("entrypoint", ["main:pilot", "main:kickoff", "main:output"])
async def test_tools_of_pydantic_ai_that_wait(pod: Any, api: Any, entrypoint: str) -> None:
    tools = """
from types import SimpleNamespace as Some
class DeferredToolRequests:
    calls, approvals = [Some(tool_name="search")], [Some(tool_name="delete")]
"""
    agent = PYDANTIC_AI["pydantic_ai/agent.py"].replace(
        'return AgentRunResult(f"{prompt}!")', "return AgentRunResult(DeferredToolRequests())"
    )
    waiting = {
        "pydantic_ai/tools.py": tools,
        "pydantic_ai/agent.py": f"from .tools import DeferredToolRequests{agent}",
    }
    output = "def output():\n    return [kickoff().output]\n"
    lay(pod, {**PYDANTIC_AI, **waiting}, PYDANTIC_CREW + output)
    api.entrypoint, api.input = entrypoint, {"prompt": "Ahoy"}
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "InputRequired")
    assert "asked a person 'delete, search'," in api.result["message"]


@pytest.mark.parametrize("entrypoint", ["main:derived", "main:made"])
async def test_an_agent_of_a_class_derived_from_pydantic_ai(pod: Any, api: Any, entrypoint: str) -> None:
    derived = 'class Pilot(Agent): pass\nderived = Pilot("Pilot")\ndef made(): return Pilot("Pilot")\n'
    lay(pod, PYDANTIC_AI, PYDANTIC_CREW + derived)
    api.entrypoint, api.input = entrypoint, {"prompt": "Ahoy"}
    await pod.run()
    assert api.result.get("output") == "Ahoy!", api.result


async def test_a_tool_of_pydantic_ai_that_the_crew_approves_itself(pod: Any, api: Any) -> None:
    lay(pod, PYDANTIC_AI, PYDANTIC_CREW)
    api.entrypoint = "main:deferred"
    await pod.run()
    assert api.result["output"] == "approved"
    assert [type for type, _ in reported(api)] == ["tool.called", "tool.result"]


async def test_usage_names_the_default_model(pod: Any, api: Any) -> None:
    lay(pod, SDK, "import agents.models.default_models\n" + CREW)
    api.entrypoint, api.input = "main:default", {"prompt": "Ahoy"}
    await pod.run()
    assert dict(reported(api))["usage"]["model"] == "default"


async def test_hooks_of_the_crew_are_called_too(pod: Any, api: Any) -> None:
    lay(pod, SDK, CREW)
    api.entrypoint = "main:observed"
    await pod.run()
    starts = ["on_agent_start", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end"]
    assert api.result["output"] == [*starts, "on_handoff", "on_agent_start", "on_agent_end"]
    assert reported(api) == sdk_events("Ahoy")


@pytest.mark.parametrize("works", [True, False])
async def test_a_streamed_run_of_the_openai_sdk(pod: Any, api: Any, works: bool) -> None:
    lay(pod, SDK, CREW)
    api.entrypoint, api.input = "main:streamed", {"works": works}
    await pod.run()
    assert api.result["output"] == ("Ahoy!" if works else None)
    error = {"agent": "Pilot", "task": "Ahoy", "error": "ValueError: no table"}
    expected = sdk_events("Ahoy")[-1] if works else ("agent.error", error)
    assert reported(api)[-1] == expected


@pytest.mark.parametrize(
    ("packages", "crew", "task", "usage"),
    [
        (SDK, CREW, "Hi", TIMED),
        (PYDANTIC_AI, PYDANTIC_CREW, None, TIMED),
        (SMOLAGENTS, SMOLAGENTS_CREW, "Hi", UNTIMED),
        (AUTOGEN, AUTOGEN_CREW, "Hi", UNTIMED),
    ],
)
async def test_a_failing_tool_ends_its_agent(
    pod: Any, api: Any, packages: Any, crew: str, task: Any, usage: Any
) -> None:
    lay(pod, packages, crew)
    api.entrypoint, api.input = "main:failing", {"question": "Hi"}
    await pod.run()
    assert api.result["reason"] == "CrewError"
    agent, tool, error = (
        {"agent": "Pilot", "task": task},
        {"agent": "Pilot", "tool": "broken"},
        "ValueError: no table",
    )
    assert reported(api) == [
        ("agent.started", agent),
        usage,
        ("tool.called", {**tool, "input": {"x": 1}}),
        ("tool.error", {**tool, "error": error}),
        ("agent.error", {**agent, "error": error}),
    ]


@pytest.mark.parametrize(
    ("packages", "crew"),
    [(SDK, CREW), (PYDANTIC_AI, PYDANTIC_CREW), (SMOLAGENTS, SMOLAGENTS_CREW), (AUTOGEN, AUTOGEN_CREW)],
)
async def test_an_exception_without_a_readable_text(pod: Any, api: Any, packages: Any, crew: str) -> None:
    lay(pod, packages, crew)
    api.entrypoint, api.input = "main:mute", {"question": "Hi"}
    await pod.run()
    assert api.result["message"].startswith("Mute")
    errors = [(type, data["error"]) for type, data in reported(api) if type.endswith(".error")]
    assert errors == [("tool.error", "Mute"), ("agent.error", "Mute")]


@pytest.mark.parametrize("entrypoint", ["main:pilot", "main:kickoff"])
@pytest.mark.parametrize(
    ("packages", "crew", "task", "usage"),
    [
        (PYDANTIC_AI, PYDANTIC_CREW, None, TIMED),
        (SMOLAGENTS, SMOLAGENTS_CREW, "Ahoy", UNTIMED),
        (AUTOGEN, AUTOGEN_CREW, "Ahoy", UNTIMED),
    ],
)
async def test_an_agent_of_another_framework(
    pod: Any, api: Any, packages: Any, crew: str, task: Any, usage: Any, entrypoint: str
) -> None:
    lay(pod, packages, crew)
    api.entrypoint, api.input = entrypoint, {"prompt": "Ahoy"}
    await pod.run()
    assert api.result.get("output") == "Ahoy!", api.result
    agent = {"agent": "Pilot", "task": task}
    assert reported(api) == [
        ("agent.started", agent),
        usage,
        ("tool.called", {**TOOL, "input": {"x": 1}}),
        ("tool.result", {**TOOL, "output": "04:15"}),
        ("agent.completed", {**agent, "output": "Ahoy!"}),
    ]


@pytest.mark.parametrize(
    ("packages", "crew"),
    [(PYDANTIC_AI, PYDANTIC_CREW), (SMOLAGENTS, SMOLAGENTS_CREW), (AUTOGEN, AUTOGEN_CREW)],
)
async def test_a_prompt_that_is_a_list_of_objects_is_json(
    pod: Any, api: Any, packages: Any, crew: str
) -> None:
    lay(pod, packages, crew)
    api.entrypoint, api.input = "main:pilot", {"prompt": [{"role": "user", "content": "Ahoy"}]}
    await pod.run()
    assert api.result["output"] == '[{"role": "user", "content": "Ahoy"}]!'


async def test_a_stream_of_smolagents_that_is_not_read_to_its_end(pod: Any, api: Any) -> None:
    lay(pod, SMOLAGENTS, SMOLAGENTS_CREW)
    api.entrypoint = "main:streamed"
    await pod.run()
    assert api.result["output"] == "Ahoy!"
    assert reported(api)[-1] == ("agent.completed", {"agent": "Pilot", "task": "Ahoy", "output": "Ahoy!"})


async def test_agents_of_autogen_in_a_team(pod: Any, api: Any) -> None:
    lay(pod, AUTOGEN, AUTOGEN_CREW)
    api.entrypoint = "main:team"
    await pod.run()
    assert api.result["output"] == [["str", "Response"], ["Response"]]
    agents = [(type, data["agent"]) for type, data in reported(api) if type.startswith("agent.")]
    kinds = ("agent.started", "agent.completed")
    assert agents == [(kind, name) for name in ("Pilot", "Custom") for kind in kinds]


async def test_a_package_of_the_crew_named_agents_is_left_alone(pod: Any, api: Any) -> None:
    pod.crew("def Runner(): return 5\n", "agents/run.py")
    pod.crew("from agents.run import Runner\ndef kickoff(): return Runner()\n")
    await pod.run()
    assert api.result["output"] == 5
    assert [event for event in api.events if event["type"] == "log"] == []


@pytest.mark.parametrize("entrypoint", ["run", "report", "tide"])
async def test_classes_of_the_crews_package_agents_are_its_own(pod: Any, api: Any, entrypoint: str) -> None:
    pod.crew("", "agents/__init__.py")
    pod.crew("class RunResult(str):\n    pass\n", "agents/result.py")
    pod.crew(
        "from dataclasses import dataclass\nfrom .result import RunResult\n"
        "@dataclass\nclass Report:\n    text: str\n    def __call__(self): return self\n"
        'def run(): return Report("low")\nreport = Report("low")\n'
        'def tide(): return {"text": RunResult("low")}\n',
        "agents/agent.py",
    )
    api.entrypoint = f"agents.agent:{entrypoint}"
    await pod.run()
    assert api.result.get("output") == {"text": "low"}, api.result


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ({"prompt": "a", "b": "c"}, "a"),
        ({"input": [{"role": "user"}]}, [{"role": "user"}]),
        ({"question": "a"}, "a"),
        ({"a": "b", "c": 1}, '{"a": "b", "c": 1}'),
        ({}, "{}"),
    ],
)
def test_the_prompt_of_an_input(given: dict[str, object], prompt: object) -> None:
    assert prompt_of(given) == prompt
