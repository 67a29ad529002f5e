"""Workflows and agents of LlamaIndex: packages with its shape. tests/e2e/frameworks uses the real ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runner.crewyard_runtime.frameworks.agents import llama_index_events
from tests.unit.runner.runtime.measured import MEASURED, with_measured

PACKAGES = {
    "llama_index_instrumentation/__init__.py": """
import contextvars, uuid
active = contextvars.ContextVar("active", default=None)
class Dispatcher:
    def __init__(self):
        self.event_handlers, self.span_handlers = [], []
    def add_event_handler(self, handler):
        self.event_handlers.append(handler)
    def add_span_handler(self, handler):
        self.span_handlers.append(handler)
    def event(self, event):
        for handler in self.event_handlers:
            handler.handle(event)
    async def span(self, name, call, arguments, instance=None):
        id_ = f"{name}-{uuid.uuid4()}"
        bound = type("Bound", (), {"arguments": arguments})
        token = active.set(id_)
        for handler in self.span_handlers:
            parent = token.old_value
            handler.span_enter(id_=id_, bound_args=bound, instance=instance, parent_id=parent, tags={})
        try:
            result = await call()
        except BaseException as error:
            for handler in self.span_handlers:
                handler.span_drop(id_=id_, bound_args=bound, instance=instance, err=error)
            raise
        finally:
            active.reset(token)
        for handler in self.span_handlers:
            handler.span_exit(id_=id_, bound_args=bound, instance=instance, result=result)
        return result
root = Dispatcher()
def get_dispatcher(name="root"):
    return root
""",
    "llama_index/core/instrumentation.py": "from llama_index_instrumentation import get_dispatcher, root\n",
    "workflows/__init__.py": "from .workflow import Workflow, step\n",
    "workflows/events.py": """
class Field:
    def is_required(self):
        return True
class Event:
    model_fields = {}
    def __init__(self, **fields):
        self.fields = fields
    def __getattr__(self, name):
        if name in self.__dict__.get("fields", {}):
            return self.fields[name]
        raise AttributeError(name)
    def items(self):
        return self.fields.items()
    def model_dump(self):
        return {"_data": self.fields}
class StartEvent(Event): pass
class StopEvent(Event):
    def __init__(self, result=None, **fields):
        super().__init__(**fields)
        self.result = result
class InputRequiredEvent(Event): pass
class HumanResponseEvent(Event): pass
""",
    "workflows/workflow.py": """
import asyncio
from llama_index_instrumentation import root
from .events import StartEvent, StopEvent
class WorkflowTimeoutError(Exception): pass
def step(function):
    return function
class Handler:
    def __init__(self, workflow, event):
        self.workflow, self.ctx = workflow, self
        self.queue, self.answers = asyncio.Queue(), asyncio.Queue()
        run = lambda: self.work(event)
        name = f"{type(workflow).__name__}.run"
        self.task = asyncio.ensure_future(root.span(name, run, {}, instance=workflow))
    async def work(self, event):
        try:
            return await asyncio.wait_for(self.workflow.work(self, event), self.workflow.timeout)
        except asyncio.TimeoutError:
            raise WorkflowTimeoutError("timed out") from None
        finally:
            self.queue.put_nowait(StopEvent())
    def __await__(self):
        return self.result().__await__()
    async def result(self):
        event = await self.task
        return event.result if type(event) is StopEvent else event
    async def stream_events(self):
        while not isinstance(event := await self.queue.get(), StopEvent):
            yield event
    def send_event(self, event):
        self.answers.put_nowait(event)
class Workflow:
    start_event_class = StartEvent
    def __init__(self, timeout=0.3):
        self.timeout = timeout
    def run(self, **inputs):
        return Handler(self, self.start_event_class(**inputs))
    async def work(self, handler, event):
        self.handler = handler
        for name in self.steps:
            call = lambda: getattr(self, name)(event)
            event = await root.span(f"{type(self).__name__}.{name}", call, {"ev": event})
        return await root.span(f"{type(self).__name__}._done", lambda: self._done(event), {"ev": event})
    async def _done(self, event):
        return event
""",
    "llama_index/core/agent/workflow.py": """
from types import SimpleNamespace as Some
from llama_index_instrumentation import active, root
from workflows.events import Event, StopEvent
from workflows.workflow import Workflow
class LLMChatStartEvent(Some): pass
class LLMChatEndEvent(Some): pass
class LLMCompletionEndEvent(Some): pass
class AgentSetup(Event): pass
class AgentInput(Event): pass
class ToolCall(Event): pass
class AgentOutput(Event):
    def __str__(self):
        return self.response
class AgentWorkflow(Workflow):
    structured = None
    def __init__(self, *agents, tools=()):
        super().__init__(None)
        self.agents, self.tools = agents, tools
    async def run_agent_step(self, ev):
        root.event(LLMChatStartEvent(span_id=active.get(), model_dict={"model": "scripted"}))
        usage = {"prompt_token_count": 2, "candidates_token_count": 1, "thoughts_token_count": 3}
        response = Some(raw={"usage_metadata": usage})
        root.event(LLMChatEndEvent(span_id=active.get(), response=response))
        root.event(LLMCompletionEndEvent(span_id="outer", response=response))
        return ev
    async def call_tool(self, ev):
        try:
            value, error = ev.function(**ev.tool_kwargs), None
        except Exception as failed:
            value, error = None, failed
        output = Some(raw_output=value, content=str(value), exception=error, is_error=bool(error))
        return Some(tool_output=output)
    async def parse_agent_output(self, ev):
        if ev.result:
            return StopEvent(AgentOutput(response=ev.result, structured_response=self.structured))
        return AgentInput(current_agent_name=ev.next)
    async def work(self, handler, event):
        async def do(name, ev):
            return await root.span(f"AgentWorkflow.{name}", lambda: getattr(self, name)(ev), {"ev": ev})
        messages = [Some(role="user", content=event.user_msg)]
        for agent, following in zip(self.agents, [*self.agents[1:], None]):
            await do("run_agent_step", AgentSetup(current_agent_name=agent, input=messages))
            for function in self.tools:
                call = ToolCall(tool_name=function.__name__, tool_kwargs={"x": 1}, function=function)
                await do("call_tool", call)
                await do("run_agent_step", AgentSetup(current_agent_name=agent, input=messages))
            text = "" if following else event.user_msg + "!"
            end = await do("parse_agent_output", Event(result=text, next=following))
        return end
""",
}
CREW = """
import asyncio
import llama_index.core.instrumentation
from llama_index.core.agent.workflow import AgentWorkflow
from workflows import Workflow, step
from workflows.events import Event, Field, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent
def tide(x):
    return {"high": "04:15"}
def broken(x):
    raise ValueError("no table")
pilot = AgentWorkflow("Pilot", tools=[tide])
failing = AgentWorkflow("Pilot", tools=[broken])
team = AgentWorkflow("Pilot", "Mate")
structured = AgentWorkflow("Pilot")
structured.structured = {"a": 1}
async def kickoff(inputs):
    return await pilot.run(user_msg=inputs["prompt"])
class Found(Event): pass
class Tides(Workflow):
    steps = ("look", "tell")
    @step
    async def look(self, ev):
        return Found(depth=len(ev.harbour))
    @step
    async def tell(self, ev):
        return StopEvent(result={"depth": ev.depth})
class Slow(Tides):
    async def look(self, ev):
        await asyncio.sleep(0.6)
        return await super().look(ev)
class Ended(StopEvent): pass
class Own(Tides):
    async def tell(self, ev):
        return Ended(depth=ev.depth)
class Broken(Tides):
    async def look(self, ev):
        raise ValueError("no table")
class Ask(StartEvent):
    model_fields = {"harbour": Field()}
class Strict(Tides):
    start_event_class = Ask
class Question(InputRequiredEvent): pass
class Asking(Workflow):
    steps = ("ask",)
    question = InputRequiredEvent
    async def ask(self, ev):
        self.handler.queue.put_nowait(self.question(prefix="Which harbour?", user_name="pilot"))
        answer = await self.handler.answers.get()
        return StopEvent(result=[type(answer).__name__, answer.response, answer.user_name])
class AskingOwn(Asking):
    question = Question
class Direction(HumanResponseEvent):
    model_fields = {"direction": Field()}
    @staticmethod
    def model_json_schema():
        return {"type": "object", "properties": {"direction": {"type": "string"}}}
class AskingFields(AskingOwn):
    events = [HumanResponseEvent, Direction]
    async def ask(self, ev):
        question = Question(harbours=["Kiel"])
        self.handler.queue.put_nowait(question)
        self.handler.queue.put_nowait(question)
        return StopEvent(result=(await self.handler.answers.get()).direction)
class AskingTwice(Asking):
    async def ask(self, ev):
        questions = [InputRequiredEvent(prefix=text) for text in ("Which harbour?", "Which tide?")]
        for question in questions * 2:
            self.handler.queue.put_nowait(question)
        answers = [(await self.handler.answers.get()).response for _ in questions]
        while not self.handler.queue.empty():
            await asyncio.sleep(0.01)
        return StopEvent(result=answers)
class AskingUnclear(AskingFields):
    events = [Direction, type("Other", (Direction,), {})]
limited, asking, asking_own = Slow(), Asking(None), AskingOwn(None)
asking_fields, asking_unclear = AskingFields(None), AskingUnclear(None)
asking_twice = AskingTwice(None)
"""
USAGE = (
    "usage",
    {"model": "scripted", "prompt_tokens": 2, "completion_tokens": 4, "duration_ms": MEASURED},
)
PILOT = {"agent": "Pilot", "task": "Ahoy"}


def lay(pod: Any, api: Any, entrypoint: str, given: dict[str, object]) -> None:
    for path, code in PACKAGES.items():
        pod.crew(code, path)
    pod.crew(CREW)
    api.entrypoint, api.input = f"main:{entrypoint}", given


async def run(pod: Any, api: Any, entrypoint: str, given: dict[str, object]) -> list[tuple[str, Any]]:
    lay(pod, api, entrypoint, given)
    await pod.run()
    return with_measured([(event["type"], event["data"]) for event in api.events if event["type"] != "log"])


@pytest.mark.parametrize(
    ("entrypoint", "given"),
    [("pilot", {"prompt": "Ahoy"}), ("pilot", {"user_msg": "Ahoy"}), ("kickoff", {"prompt": "Ahoy"})],
)
async def test_an_agent_reports_its_work(
    pod: Any, api: Any, entrypoint: str, given: dict[str, object]
) -> None:
    events = await run(pod, api, entrypoint, given)
    assert api.result.get("output") == "Ahoy!", api.result
    tool = {"agent": "Pilot", "tool": "tide"}
    assert events == [
        ("agent.started", PILOT),
        USAGE,
        ("tool.called", {**tool, "input": {"x": 1}}),
        ("tool.result", {**tool, "output": {"high": "04:15"}}),
        USAGE,
        ("agent.completed", {**PILOT, "output": "Ahoy!"}),
    ]


class LLMChatEndEvent(SimpleNamespace):
    pass


class LLMCompletionEndEvent(SimpleNamespace):
    pass


def test_completions_that_are_chats_count_once_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []
    monkeypatch.setattr(
        llama_index_events, "report", lambda kind, data: counted.append(data["prompt_tokens"])
    )
    handler = llama_index_events.ReportingHandler()
    responses = [SimpleNamespace(raw={"usage": {"prompt_tokens": tokens}}) for tokens in (2, 3)]
    for number, response in enumerate(responses):
        handler.handle(LLMChatEndEvent(span_id=f"chat {number}", response=response))
    for number, response in enumerate(responses):
        handler.handle(LLMCompletionEndEvent(span_id=f"completion {number}", response=response))
    assert counted == [2, 3]


async def test_a_failing_tool_does_not_end_its_agent(pod: Any, api: Any) -> None:
    events = await run(pod, api, "failing", {"prompt": "Ahoy"})
    assert api.result["output"] == "Ahoy!"
    assert ("tool.error", {"agent": "Pilot", "tool": "broken", "error": "ValueError: no table"}) in events


async def test_an_agent_that_gets_the_rest_is_named(pod: Any, api: Any) -> None:
    events = await run(pod, api, "team", {"prompt": "Ahoy"})
    assert [event for event in events if event[0].startswith("agent.")] == [
        ("agent.started", PILOT),
        ("agent.completed", {**PILOT, "output": {"handoff": "Mate"}}),
        ("agent.started", {**PILOT, "agent": "Mate"}),
        ("agent.completed", {**PILOT, "agent": "Mate", "output": "Ahoy!"}),
    ]


@pytest.mark.parametrize(
    ("entrypoint", "given", "output"),
    [
        ("structured", {"prompt": "Ahoy"}, {"a": 1}),
        ("Tides", {"harbour": "Kiel"}, {"depth": 4}),
        ("Slow", {"harbour": "Kiel"}, {"depth": 4}),
        ("Own", {"harbour": "Kiel"}, {"depth": 4}),
        ("Strict", {"harbour": "Kiel"}, {"depth": 4}),
    ],
)
async def test_results(pod: Any, api: Any, entrypoint: str, given: dict[str, object], output: object) -> None:
    await run(pod, api, entrypoint, given)
    assert api.result.get("output") == output, api.result


async def test_steps_of_the_crew_are_agents(pod: Any, api: Any) -> None:
    events = await run(pod, api, "Tides", {"harbour": "Kiel"})
    look, tell = {"agent": "look", "task": "StartEvent"}, {"agent": "tell", "task": "Found"}
    assert events == [
        ("agent.started", look),
        ("agent.completed", {**look, "output": {"depth": 4}}),
        ("agent.started", tell),
        ("agent.completed", {**tell, "output": {"depth": 4}}),
    ]


@pytest.mark.parametrize(
    ("entrypoint", "reason", "words"),
    [
        ("limited", "CrewError", "make the workflow with timeout=None"),
        ("Strict", "CrewError", 'start the run with {"harbour": …}'),
        ("Broken", "CrewError", "no table"),
        ("asking", "InputRequired", "Which harbour?"),
        ("asking_own", "InputRequired", "which event answers Question is not clear"),
        ("asking_unclear", "InputRequired", "which event answers Question is not clear"),
    ],
)
async def test_failures(pod: Any, api: Any, entrypoint: str, reason: str, words: str) -> None:
    events = await run(pod, api, entrypoint, {} if entrypoint == "Strict" else {"harbour": "Kiel"})
    assert api.result["reason"] == reason, api.result
    assert words in api.result["message"]
    assert entrypoint != "Broken" or events[-1][1]["error"] == "ValueError: no table"


async def test_events_that_are_written_twice_ask_once(pod: Any, api: Any) -> None:
    lay(pod, api, "asking_twice", {})
    api.ask_seconds, api.answers = 86400, {"q1": "Kiel", "q2": "high", "q3": "again", "q4": "again"}
    await pod.run()
    assert (api.result.get("output"), list(api.questions)) == (["Kiel", "high"], ["q1", "q2"])


async def test_a_person_answers_an_event_that_asks(pod: Any, api: Any) -> None:
    lay(pod, api, "asking", {})
    api.ask_seconds, api.answers = 86400, {"q1": "Kiel"}
    await pod.run()
    assert api.questions["q1"]["prompt"] == "Which harbour?"
    assert api.result.get("output") == ["HumanResponseEvent", "Kiel", "pilot"], api.result


async def test_an_answer_has_the_fields_of_the_event_that_a_step_takes(pod: Any, api: Any) -> None:
    lay(pod, api, "asking_fields", {})
    api.ask_seconds, api.answers = 86400, {"q1": {"direction": "north"}}
    await pod.run()
    assert api.result.get("output") == "north", api.result
    assert list(api.questions) == ["q1"]
    assert api.questions["q1"]["prompt"] == '{"harbours": ["Kiel"]}'
    assert api.questions["q1"]["schema"]["properties"] == {"direction": {"type": "string"}}
