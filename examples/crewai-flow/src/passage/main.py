"""The flow, where `crewai create flow` puts it: survey → plan, with a state that both steps use.

Run it locally: `python -m passage.main Hamburg`.
"""

import sys
from pathlib import Path

from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel

from passage.pilot import crew


class Passage(BaseModel):
    """The state of the flow. CrewAI fills it with the run's input, so these are the allowed input fields."""

    harbour: str = "Bristol"
    draught: float = 4.0
    depth: float = 0.0
    high_water: str = ""


class PassageFlow(Flow[Passage]):
    suppress_flow_events = True  # otherwise CrewAI prints a box for every step

    @start()
    def survey(self):
        """Run a crew inside the flow; its agent and tool emit events as in any crew."""
        tide = crew.kickoff(inputs={"harbour": self.state.harbour}).pydantic
        self.state.depth, self.state.high_water = tide.depth, tide.high_water

    @listen(survey)
    def plan(self):
        """Continue with the state in plain code."""
        spare = round(self.state.depth - self.state.draught, 1)
        advice = f"enter at {self.state.high_water}" if spare > 0 else "wait outside"
        plan = Path("artifacts/plan.md")
        plan.parent.mkdir(exist_ok=True)
        plan.write_text(f"# {self.state.harbour}\n\n{spare} m below the keel: {advice}.\n", encoding="utf-8")
        return {"harbour": self.state.harbour, "spare": spare, "advice": advice}


if __name__ == "__main__":
    print(PassageFlow().kickoff(inputs={"harbour": sys.argv[1]} if len(sys.argv) > 1 else {}))
