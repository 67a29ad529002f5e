"""Agents of the Agent Development Kit: a package with its shape. tests/e2e/frameworks uses the real one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runner.runtime.measured import MEASURED, with_measured

KIT = {
    "google/genai/types.py": """
class Part:
    def __init__(self, text=None, thought=None):
        self.text, self.thought = text, thought
class Content:
    def __init__(self, role, parts):
        self.role, self.parts = role, parts
""",
    "google/adk/__init__.py": "",
    "google/adk/agents/__init__.py": "from .base_agent import BaseAgent, LlmAgent\n",
    "google/adk/agents/base_agent.py": """
from types import SimpleNamespace as Some
from google.genai.types import Content, Part
class Event:
    partial = False
    def __init__(self, author, text=None, transfer=None, waits=(), error=None, output=None):
        parts = [Part("a thought", True), Part(text)] if text else []
        self.author, self.content = author, Content("model", parts)
        self.actions, self.output = Some(transfer_to_agent=transfer), output
        self.long_running_tool_ids, self.error_code, self.error_message = set(waits), error, None
    def is_final_response(self):
        return not self.actions.transfer_to_agent
    def get_function_calls(self):
        return [Some(name=name) for name in self.long_running_tool_ids]
class BaseAgent:
    async def run_async(self, parent_context):
        async for event in self._run_async_impl(parent_context):
            yield event
class LlmAgent(BaseAgent):
    output_schema = None
    def __init__(self, name, tools=(), transfer=None, answer=None, waits=(), error=None, output_schema=None):
        self.name, self.tools, self.transfer, self.answer = name, tools, transfer, answer
        self.waits, self.error, self.output_schema = waits, error, output_schema
    async def _run_async_impl(self, context):
        asked = context.user_content.parts[0].text
        plugins = context.plugins
        usage = Some(prompt_token_count=2, candidates_token_count=1, total_token_count=10)
        usage.thoughts_token_count, usage.tool_use_prompt_token_count = 3, 4
        for plugin in plugins:
            await plugin.before_model_callback(callback_context=context, llm_request=None)
        for partial in (True, False):
            response = Some(usage_metadata=usage, partial=partial, model_version="scripted")
            for plugin in plugins:
                await plugin.after_model_callback(callback_context=context, llm_response=response)
        for function in self.tools:
            call = {"tool": Some(name=function.__name__), "tool_args": {"x": 1}}
            call["tool_context"] = Some(agent_name=self.name)
            for plugin in plugins:
                await plugin.before_tool_callback(**call)
            try:
                result = function()
            except Exception as error:
                for plugin in plugins:
                    await plugin.on_tool_error_callback(**call, error=error)
                raise
            for plugin in plugins:
                await plugin.after_tool_callback(**call, result=result)
        if self.transfer:
            yield Event(self.name, transfer=self.transfer.name)
            async for event in self.transfer.run_async(context):
                yield event
            return
        if self.waits:
            yield Event(self.name, waits=self.waits)
            yield Event(self.name)
            return
        yield Event(self.name, None if self.error else self.answer or f"{asked}!", error=self.error)
""",
    "google/adk/apps/app.py": """
class App:
    def __init__(self, name, root_agent):
        self.name, self.root_agent = name, root_agent
""",
    "google/adk/plugins/base_plugin.py": """
class BasePlugin:
    def __init__(self, name):
        self.name = name
    async def before_tool_callback(self, **named): pass
    async def after_tool_callback(self, **named): pass
    async def on_tool_error_callback(self, **named): pass
    async def before_model_callback(self, **named): pass
    async def after_model_callback(self, **named): pass
""",
    "google/adk/plugins/plugin_manager.py": """
from .base_plugin import BasePlugin
class PluginManager:
    def __init__(self, plugins=None):
        self.plugins = list(plugins or ())
""",
    "google/adk/runners.py": """
from types import SimpleNamespace as Some
from .plugins.plugin_manager import PluginManager
class Sessions:
    async def create_session(self, *, app_name, user_id):
        return Some(id=f"{app_name}/{user_id}")
class InMemoryRunner:
    def __init__(self, agent=None, *, app_name=None, app=None, plugins=None):
        self.agent = app.root_agent if app else agent
        self.app_name = app.name if app else app_name
        self.session_service, self.plugin_manager = Sessions(), PluginManager(plugins)
    async def run_async(self, *, user_id, session_id, new_message):
        assert session_id == f"{self.app_name}/{user_id}"
        context = Some(user_content=new_message, plugins=self.plugin_manager.plugins)
        async for event in self.agent.run_async(context):
            yield event
""",
}
CREW = """
from google.adk.agents import LlmAgent
from google.adk.agents.base_agent import Event
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager
def tide():
    return "04:15"
def broken():
    raise ValueError("no table")
root_agent = LlmAgent("Pilot", [tide])
app = App("tides", root_agent)
failing = LlmAgent("Pilot", [broken])
handing = LlmAgent("Pilot", transfer=LlmAgent("Mate"))
structured = LlmAgent("Pilot", answer='{"a": 1}', output_schema=dict)
waiting = LlmAgent("Pilot", waits=["ask_harbour"])
refused = LlmAgent("Pilot", error="SAFETY")
class Stateful(LlmAgent):
    said = {}
    async def _run_async_impl(self, context):
        async for event in super()._run_async_impl(context):
            yield event
        yield Event(self.name, **self.said)
        yield Event(self.name)
stateful = Stateful("Pilot")
stateful_refused = Stateful("Pilot", error="SAFETY")
node = Stateful("Pilot")
node.said = {"output": {"tide": 0}}
def plugins():
    first = PluginManager([BasePlugin("own")])
    return [[plugin.name for plugin in PluginManager(given).plugins] for given in ([], first.plugins)]
"""
TOKENS = {"model": "scripted", "prompt_tokens": 6, "completion_tokens": 4}
USAGE = ("usage", {**TOKENS, "duration_ms": MEASURED})
PILOT = {"agent": "Pilot", "task": "Ahoy"}


async def run(pod: Any, api: Any, entrypoint: str) -> list[tuple[str, Any]]:
    for path, code in KIT.items():
        pod.crew(code, path)
    pod.crew(CREW)
    api.entrypoint, api.input = f"main:{entrypoint}", {"prompt": "Ahoy"}
    await pod.run()
    return with_measured([(event["type"], event["data"]) for event in api.events if event["type"] != "log"])


@pytest.mark.parametrize("entrypoint", ["root_agent", "app"])
async def test_an_agent_and_an_app(pod: Any, api: Any, entrypoint: str) -> None:
    events = await run(pod, api, entrypoint)
    assert api.result.get("output") == "Ahoy!", api.result
    tool = {"agent": "Pilot", "tool": "tide"}
    assert events == [
        ("agent.started", PILOT),
        USAGE,
        ("tool.called", {**tool, "input": {"x": 1}}),
        ("tool.result", {**tool, "output": "04:15"}),
        ("agent.completed", {**PILOT, "output": "Ahoy!"}),
    ]


async def test_a_failing_tool_ends_its_agent(pod: Any, api: Any) -> None:
    events = await run(pod, api, "failing")
    assert api.result["reason"] == "CrewError"
    error = "ValueError: no table"
    assert events[-2:] == [
        ("tool.error", {"agent": "Pilot", "tool": "broken", "error": error}),
        ("agent.error", {**PILOT, "error": error}),
    ]


async def test_an_agent_that_gets_the_rest_is_named(pod: Any, api: Any) -> None:
    events = await run(pod, api, "handing")
    ends = [data for kind, data in events if kind == "agent.completed"]
    assert ends == [
        {"agent": "Mate", "task": "Ahoy", "output": "Ahoy!"},
        {**PILOT, "output": {"handoff": "Mate"}},
    ]


async def test_an_answer_with_a_schema_is_json(pod: Any, api: Any) -> None:
    await run(pod, api, "structured")
    assert api.result["output"] == {"a": 1}


@pytest.mark.parametrize(("entrypoint", "output"), [("stateful", "Ahoy!"), ("node", {"tide": 0})])
async def test_an_event_that_only_sets_state_is_not_the_answer(
    pod: Any, api: Any, entrypoint: str, output: object
) -> None:
    await run(pod, api, entrypoint)
    assert api.result.get("output") == output, api.result


async def test_an_agent_that_waits_for_a_person_does_not_succeed(pod: Any, api: Any) -> None:
    await run(pod, api, "waiting")
    assert api.result["reason"] == "InputRequired" and "ask_harbour" in api.result["message"]


@pytest.mark.parametrize("entrypoint", ["refused", "stateful_refused"])
async def test_a_model_that_refuses_fails_the_run(pod: Any, api: Any, entrypoint: str) -> None:
    await run(pod, api, entrypoint)
    assert api.result["reason"] == "CrewError" and "SAFETY" in api.result["message"]


async def test_each_runner_has_one_plugin_of_crewyard_first(pod: Any, api: Any) -> None:
    await run(pod, api, "plugins")
    assert api.result["output"] == [["crewyard"], ["crewyard", "own"]]
