import os

from scripted import tide_table  # isort: skip  (sets the variables that the model reads)
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI

# An answer in parts, which is the default, has its tokens only if it is asked for them.
model = OpenAI(
    "gpt-4o-mini",
    api_base=os.environ["OPENAI_BASE_URL"],
    additional_kwargs={"stream_options": {"include_usage": True}},
)
pilot = FunctionAgent("Pilot", system_prompt="Look it up.", tools=[tide_table], llm=model)
agent = AgentWorkflow([pilot])


class Tides(Workflow):
    """A workflow of its own that uses an agent."""

    @step
    async def look(self, ev: StartEvent) -> StopEvent:
        """Ask the agent for the tide of the input's harbour."""
        return StopEvent(result={"answer": str(await pilot.run(f"When is high water of {ev.harbour}?"))})
