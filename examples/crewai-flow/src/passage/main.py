"""The flow, where `crewai create flow` puts it: survey → plan, with a state that both steps write.

On a laptop: `python -m passage.main Hamburg`.
"""

import sys
from pathlib import Path

from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel

from passage.pilot import crew


class Passage(BaseModel):
    """The flow's state. The run's input is put into it, so these are the names that an input may have."""

    harbour: str = "Bristol"
    draught: float = 4.0
    depth: float = 0.0
    high_water: str = ""


class PassageFlow(Flow[Passage]):
    suppress_flow_events = True  # else CrewAI prints boxes about every step

    @start()
    def survey(self):
        """A crew within the flow: what its agent and tool do is told as of any crew."""
        tide = crew.kickoff(inputs={"harbour": self.state.harbour}).pydantic
        self.state.depth, self.state.high_water = tide.depth, tide.high_water

    @listen(survey)
    def plan(self):
        """Plain code that goes on with the state."""
        spare = round(self.state.depth - self.state.draught, 1)
        advice = f"enter at {self.state.high_water}" if spare > 0 else "wait outside"
        plan = Path("artifacts/plan.md")
        plan.parent.mkdir(exist_ok=True)
        plan.write_text(f"# {self.state.harbour}\n\n{spare} m below the keel: {advice}.\n", encoding="utf-8")
        return {"harbour": self.state.harbour, "spare": spare, "advice": advice}


if __name__ == "__main__":
    print(PassageFlow().kickoff(inputs={"harbour": sys.argv[1]} if len(sys.argv) > 1 else {}))
