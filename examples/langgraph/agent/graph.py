"""The graph: plan → look up each question → write the report.

Everything here is ordinary LangGraph: nodes, tool and model emit the run's agent, tool and usage events
automatically. `emit` adds a custom event.
"""

import logging
import operator
from pathlib import Path
from typing import Annotated, TypedDict

from crewyard_runtime import emit
from langgraph.graph import END, START, StateGraph

from agent.library import look_up
from agent.model import ScriptedModel

log = logging.getLogger(__name__)
model = ScriptedModel()


class State(TypedDict, total=False):
    topic: str
    questions: list[str]
    findings: Annotated[list[str], operator.add]
    report: str


def plan(state: State) -> State:
    topic = state.get("topic") or "shipyards"
    print(f"planning a report on {topic}")
    answer = model.invoke(f"Ask three questions on {topic}.")
    return {"topic": topic, "questions": answer.text.splitlines()}


def research(state: State) -> State:
    done = len(state.get("findings", []))
    question = state["questions"][done]
    finding = look_up.invoke({"question": question})
    print(f"{question} {finding}")
    emit("progress", step="research", done=done + 1, of=len(state["questions"]))
    return {"findings": [f"**{question}** {finding}"]}


def more_to_ask(state: State) -> str:
    return "research" if len(state["findings"]) < len(state["questions"]) else "write"


def write(state: State) -> State:
    lines = [f"# {state['topic'].capitalize()}", "", *(f"- {finding}" for finding in state["findings"]), ""]
    report = Path("artifacts/report.md")
    report.parent.mkdir(exist_ok=True)
    report.write_text("\n".join(lines), encoding="utf-8")
    log.warning("the report rests on %d findings only", len(state["findings"]))
    return {"report": str(report)}


_builder = StateGraph(State)
_builder.add_node("plan", plan)
_builder.add_node("research", research)
_builder.add_node("write", write)
_builder.add_edge(START, "plan")
_builder.add_edge("plan", "research")
_builder.add_conditional_edges("research", more_to_ask, ["research", "write"])
_builder.add_edge("write", END)
graph = _builder.compile(name="report")
