"""The crew inside the flow. It also runs without the flow, with the entrypoint `passage.pilot:crew`."""

from crewai import Agent, Crew, Task
from pydantic import BaseModel

from passage.model import ScriptedModel
from passage.tide_table import tide_table


class Tide(BaseModel):
    """The output of the crew."""

    depth: float
    high_water: str


pilot = Agent(
    role="Pilot",
    goal="Find out what the tide table says about {harbour}",
    backstory="You never guess. You look it up.",
    tools=[tide_table],
    llm=ScriptedModel(model="scripted"),
)
sounding = Task(
    description="Find the tide of {harbour}.",
    expected_output="Depth in metres, and the time of high water.",
    agent=pilot,
    output_pydantic=Tide,
)
crew = Crew(agents=[pilot], tasks=[sounding])
