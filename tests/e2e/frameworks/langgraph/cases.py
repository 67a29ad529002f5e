"""Graphs and runnables beside the example's graph. Uploaded with examples/langgraph by test_frameworks.py."""

from typing import TypedDict

from agent.library import look_up
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


class State(TypedDict, total=False):
    question: str
    answer: str


def answer(state: State) -> State:
    return {"answer": look_up.invoke({"question": state["question"]})}


builder = StateGraph(State)  # not compiled
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)


@tool
async def hail(ship: str) -> str:
    """Calls a ship; there is no other way than to wait for it."""
    return f"{ship} hears you"


async def watch(state: MessagesState) -> dict[str, list[AIMessage]]:
    call = {"name": "hail", "args": {"ship": "Argo"}, "id": "1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


_waiting = StateGraph(MessagesState)
_waiting.add_node("watch", watch)
_waiting.add_node("radio", ToolNode([hail]))
_waiting.add_edge(START, "watch")
_waiting.add_edge("watch", "radio")
waiting = _waiting.compile(name="bridge")


@tool
def sound(depth: int) -> str:
    """Fails."""
    raise ValueError(f"no line of {depth} m")


def measure(state: State) -> State:
    return {"answer": sound.invoke({"depth": 40})}


_failing = StateGraph(State)
_failing.add_node("measure", measure)
_failing.add_edge(START, "measure")
failing = _failing.compile()


async def shout(found: str) -> dict[str, str]:
    return {"shouted": found.upper()}


runnable = RunnableLambda(lambda given: given["question"]) | look_up | RunnableLambda(shout)
