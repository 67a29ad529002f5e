"""Flows of CrewAI beside the example's: one that fails, and one that starts crews in all the ways there are.

Uploaded with examples/crewai-flow by test_frameworks.py.
"""

import time

from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, and_, listen, start
from crewai.tools import tool
from passage.model import ScriptedModel
from passage.tide_table import tide_table


class SilentModel(ScriptedModel):
    """Fails at every call."""

    def call(self, *given, **named):
        raise ConnectionError("the model is silent")


class DoingModel(ScriptedModel):
    """Calls a tool that fails, and then is done."""

    calls: int = 0

    def call(self, *given, **named):
        self.calls += 1
        return "Action: anchor\nAction Input: {}" if self.calls == 1 else "Final Answer: adrift"


@tool("anchor")
def anchor() -> str:
    """Takes its time, and fails."""
    time.sleep(0.5)
    raise RuntimeError("no anchorage")


class HeedingModel(ScriptedModel):
    """Writes a draft, and then what a person adds."""

    def call(self, messages, *given, **named):
        return "Final Answer: " + ("with the lights" if "Name the lights" in str(messages) else "a draft")


def alone(role: str, model: type[ScriptedModel], task: str, *tools, asks: bool = False) -> Crew:
    """A crew of one."""
    agent = Agent(
        role=role,
        goal="Come home",
        backstory="Of few words.",
        llm=model(model="scripted"),
        tools=list(tools),
        max_retry_limit=1,
    )
    work = Task(description=task, expected_output="A word.", agent=agent, human_input=asks)
    return Crew(agents=[agent], tasks=[work])


def pilot() -> Crew:
    """Looks a harbour up."""
    return alone("Pilot", ScriptedModel, "Find the tide of {harbour}.", tide_table)


def reviewed(inputs):
    """Asks a person about its answer."""
    return alone("Pilot", HeedingModel, "Describe the entry.", asks=True).kickoff().raw


class Silent(Flow):
    """Its only step fails with its crew."""

    suppress_flow_events = True

    @start()
    def sail(self):
        return alone("Mate", SilentModel, "Sail home.").kickoff()


class Fleet(Flow):
    """Two crews at once, whose tools fail alike; then crews for each input, awaited, and in a flow within."""

    suppress_flow_events = True

    @start()
    def port(self):
        return alone("Bosun", DoingModel, "Anchor in the east.", anchor).kickoff()

    @start()
    def starboard(self):
        return alone("Bosun", DoingModel, "Anchor in the west.", anchor).kickoff()

    @listen(and_(port, starboard))
    def each(self):
        return pilot().kickoff_for_each(inputs=[{"harbour": "Hamburg"}, {"harbour": "Bristol"}])

    @listen(each)
    async def awaited(self, tides):
        return [*tides, await pilot().kickoff_async(inputs={"harbour": "Porto"})]

    @listen(awaited)
    async def within(self, tides):
        return [*tides, await Tender().kickoff_async(inputs={"harbour": "Hamburg"})]


class Tender(Flow):
    """A flow within a flow, which asks an agent that is in no crew."""

    suppress_flow_events = True

    @start()
    async def ask(self):
        return await pilot().agents[0].kickoff_async(f"Find the tide of {self.state['harbour']}.")
