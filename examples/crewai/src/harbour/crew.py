"""The crew, in the layout of `crewai create crew`: agents and tasks from YAML, assembled by @CrewBase.

For a real crew, give the agents your model (`llm="openai/…"`, with its key in the project's variables).
Nothing else changes.
"""

from crewai import Agent, Crew, Process, Task
from crewai.project import CrewBase, agent, before_kickoff, crew, task

from harbour.model import ScriptedModel
from harbour.tide_table import TideTable


@CrewBase
class Harbour:
    """Researcher, then writer."""

    agents_config = "config/agents.yaml"
    tasks_config = "config/tasks.yaml"

    @before_kickoff
    def choose_harbour(self, inputs):
        """Use Bristol if the run has no input."""
        return {"harbour": "Bristol", **(inputs or {})}

    @agent
    def researcher(self) -> Agent:
        return Agent(
            config=self.agents_config["researcher"], tools=[TideTable()], llm=ScriptedModel(model="scripted")
        )

    @agent
    def writer(self) -> Agent:
        return Agent(config=self.agents_config["writer"], llm=ScriptedModel(model="scripted"))

    @task
    def research(self) -> Task:
        return Task(config=self.tasks_config["research"])

    @task
    def report(self) -> Task:
        return Task(config=self.tasks_config["report"])

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks, process=Process.sequential)
