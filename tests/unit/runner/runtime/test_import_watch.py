"""Framework hooks: fakes of the frameworks, imported by a crew in the real runner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runner.runtime.measured import MEASURED, with_measured

BUS = """
class CrewAIEventsBus:
    def __init__(self):
        self.seen = []
    def emit(self, source, event):
        self.seen.append(event)
        return "future"
crewai_event_bus = CrewAIEventsBus()
"""
EVENT = """
class Event:
    def __init__(self, type, **fields):
        self.type = type
        self.__dict__.update(fields)
class Agent:
    role = "Cook "
class Task:
    description = "make tea"
def start(): return Event("agent_execution_started", agent=Agent(), task=Task())
def end(): return Event("agent_execution_completed", agent=Agent(), task=Task(), output="tea")
def asked(): return Event("llm_call_started", call_id="1", model="m")
def answered(): return Event("llm_call_completed", call_id="1", model="m", usage={"prompt_tokens": 2})
"""
LAZY = """
def kickoff():
    print("before")
    import os
    from crewai.events.event_bus import crewai_event_bus as bus
    from happenings import answered, asked, end, start
    for event in (asked(), answered()):
        bus.emit(None, event)
    futures = [bus.emit(None, start()), bus.emit(None, event=end()), bus.emit(None, end()), bus.emit(None, 5)]
    defaults = {name: value for name, value in os.environ.items() if name.startswith("CREWAI_")}
    return {"futures": futures, "seen": len(bus.seen), "defaults": defaults}
"""


def reported(api: Any) -> list[tuple[str, Any]]:
    return [(event["type"], event["data"]) for event in api.events if event["type"] != "log"]


@pytest.mark.parametrize(
    "path", ["crewai/events/event_bus.py", "crewai/utilities/events/crewai_event_bus.py"]
)
async def test_crewai_is_hooked_wherever_it_is_imported(pod: Any, api: Any, path: str) -> None:
    pod.crew(BUS, path)
    pod.crew(EVENT, "happenings.py")
    pod.crew(LAZY.replace("crewai.events.event_bus", path.removesuffix(".py").replace("/", ".")))
    pod.environ["CREWAI_TRACING_ENABLED"] = "true"
    await pod.run()
    agent = {"agent": "Cook", "task": "make tea"}
    # The second end has no start, and 5 is not an event: both reach the bus, neither is reported.
    usage, *agents = reported(api)
    assert agents == [("agent.started", agent), ("agent.completed", {**agent, "output": "tea"})]
    tokens = {"model": "m", "prompt_tokens": 2, "completion_tokens": 0}
    assert with_measured([usage]) == [("usage", {**tokens, "duration_ms": MEASURED})]
    assert api.result["output"] == {
        "futures": ["future"] * 4,
        "seen": 6,
        "defaults": {
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "true",  # as the project says
            "CREWAI_DISABLE_VERSION_CHECK": "true",
        },
    }


async def test_no_run_of_crewai_is_the_first_of_a_user(pod: Any, api: Any) -> None:
    """CrewAI asks after the first execution whether it may show its traces; a run's home is always new."""
    pod.crew(
        """
        def is_first_execution():
            return True
        def should_auto_collect_first_time_traces():
            return is_first_execution()
        """,
        "crewai/events/listeners/tracing/utils.py",
    )
    pod.crew(
        """
        from crewai.events.listeners.tracing.utils import should_auto_collect_first_time_traces

        def kickoff():
            return {"asks": should_auto_collect_first_time_traces()}
        """
    )
    await pod.run()
    assert api.result["output"] == {"asks": False}


async def test_the_result_of_a_crew_is_the_output(pod: Any, api: Any) -> None:
    pod.crew(BUS, "crewai/events/event_bus.py")
    pod.crew(
        """
        class CrewOutput:
            pydantic = json_dict = None
            raw = "the text"
            tasks_output = ["long", "and", "wide"]
        """,
        "crewai/crews/crew_output.py",
    )
    pod.crew(
        """
        import crewai.events.event_bus
        from crewai.crews.crew_output import CrewOutput

        class Crew:
            def kickoff(self, inputs=None):
                return CrewOutput()
        """
    )
    api.entrypoint = "main:Crew"
    await pod.run()
    assert api.result["output"] == "the text"


async def test_a_missing_input_is_reported(pod: Any, api: Any) -> None:
    pod.crew(BUS, "crewai/events/event_bus.py")
    pod.crew(
        """
        import crewai.events.event_bus

        class Crew:
            def fetch_inputs(self):
                return {"topic"}
            def kickoff(self, inputs=None):
                return "the model got a placeholder"
        """
    )
    api.entrypoint = "main:Crew"
    await pod.run()
    assert api.result["reason"] == "CrewError"
    assert 'start the run with {"topic": …}' in api.result["message"]


async def test_an_unknown_version_only_loses_its_events(pod: Any, api: Any) -> None:
    pod.crew("changed = True", "crewai/events/event_bus.py")
    pod.crew("import crewai.events.event_bus as bus\ndef kickoff():\n    return bus.changed")
    await pod.run()
    assert api.result["output"] is True
    assert ["no events of crewai.events.event_bus" in line for line in api.logs("error")] == [True]


LANGCHAIN = {
    "langchain_core/callbacks/base.py": "class BaseCallbackHandler:\n    ignore_llm = False",
    "langchain_core/callbacks/manager.py": "import langchain_core.callbacks.base",
    "langchain_core/tracers/base.py": "import langchain_core.callbacks.manager\nclass BaseTracer: ...",
    "langchain_core/tracers/context.py": """
        from langchain_core.tracers.base import BaseTracer
        hooks = []
        def register_configure_hook(variable, inheritable):
            hooks.append((variable, inheritable))
    """,
}


@pytest.mark.parametrize("first", ["callbacks.manager", "tracers.base"])
async def test_langchain_has_one_handler_in_every_thread(pod: Any, api: Any, first: str) -> None:
    for path, text in LANGCHAIN.items():
        pod.crew(text, path)
    pod.crew(f"import langchain_core.{first}", "first.py")
    pod.crew(
        """
        import threading
        import first
        from langchain_core.callbacks.base import BaseCallbackHandler
        from langchain_core.tracers.context import hooks

        def kickoff():
            [(variable, inheritable)] = hooks
            def work():
                handler = variable.get()
                assert isinstance(handler, BaseCallbackHandler) and handler.run_inline
                node = {"langgraph_node": "plan", "langgraph_step": 1}
                handler.on_chain_start(None, {}, run_id=1, tags=["graph:step:1"], metadata=node, name="plan")
                handler.on_chain_end({"n": 1}, run_id=1)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return inheritable
        """
    )
    await pod.run()
    agent = {"agent": "plan", "task": "step 1"}
    assert reported(api) == [("agent.started", agent), ("agent.completed", {**agent, "output": {"n": 1}})]
    assert api.result["output"] is True


async def test_a_crew_without_frameworks_loads_no_hooks(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import sys
        def kickoff():
            return [name for name in sys.modules if "langchain" in name or "crewai" in name]
        """
    )
    await pod.run()
    assert api.result["output"] == []


async def test_modules_keep_their_usual_loader(pod: Any, api: Any) -> None:
    """Tools that read a module's loader get the usual one."""
    pod.crew(BUS, "crewai/events/event_bus.py")
    pod.crew(
        """
        import inspect
        import crewai.events.event_bus as bus

        def kickoff():
            return [type(bus.__loader__).__name__, "class CrewAIEventsBus" in inspect.getsource(bus)]
        """
    )
    await pod.run()
    assert api.result["output"] == ["SourceFileLoader", True]
