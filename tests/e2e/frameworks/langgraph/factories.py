"""Functions that make graphs, graphs with a context, and graphs that wait. Uploaded by test_frameworks.py."""

import contextlib
import dataclasses
import operator
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt


class State(TypedDict, total=False):
    answer: Any


class Berth(TypedDict, total=False):
    quay: str


@dataclasses.dataclass
class Tides:
    model: str = "small"


def builder(node: Any, schema: Any = None) -> Any:
    made = StateGraph(State, context_schema=schema)
    made.add_node("node", node)
    made.add_edge(START, "node")
    made.add_edge("node", END)
    return made


def tell_thread(state: State, config: RunnableConfig) -> State:
    own = config["configurable"]
    return {"answer": [own["thread_id"].partition("_")[0], own.get("speed")]}


def tell_model(state: State, runtime: Runtime[Tides]) -> State:
    return {"answer": runtime.context.model}


def tell_quay(state: State, runtime: Runtime[Berth]) -> State:
    return {"answer": runtime.context.get("quay", "any")}


def ask(state: State) -> State:
    return {"answer": interrupt("Which harbour?")}


saved = builder(tell_thread).compile(checkpointer=MemorySaver())
tides = builder(tell_model, Tides).compile()
berth = builder(tell_quay, Berth).compile()


class Answers(TypedDict, total=False):
    answers: Annotated[list[str], operator.add]


def question(text: str) -> Any:
    return lambda state: {"answers": [interrupt(text)]}


def questions(state: Answers) -> Answers:
    return {"answers": [interrupt(f"Again {number}?") for number in range(2)]}


def asking() -> Any:
    """Two questions at once, one in a subgraph, and some in a loop."""
    inner = StateGraph(Answers)
    inner.add_node("inner", question("Inner?"))
    inner.add_edge(START, "inner")
    outer = StateGraph(Answers)
    outer.add_node("first", question("First?"))
    outer.add_node("second", question("Second?"))
    outer.add_node("sub", inner.compile())
    outer.add_node("again", questions)
    outer.add_edge(START, "first")
    outer.add_edge(START, "second")
    outer.add_edge(["first", "second"], "sub")
    outer.add_edge("sub", "again")
    return outer.compile()


def returning(inputs: State) -> Any:
    """Calls a graph itself, so the runner cannot go on with it."""
    return (
        builder(ask).compile(checkpointer=MemorySaver()).invoke(inputs, {"configurable": {"thread_id": "1"}})
    )


stopping = builder(tell_thread).compile(interrupt_before=["node"])


def by_config(config: RunnableConfig) -> Any:
    return builder(lambda state: {"answer": sorted(config["configurable"])}).compile()


def by_runtime(runtime: Any) -> Any:
    return builder(lambda state: {"answer": runtime.access_context}).compile()


async def by_coroutine(config: RunnableConfig) -> Any:
    return saved


@contextlib.asynccontextmanager
async def entered() -> AsyncIterator[Any]:
    yield saved
    print("left")


@contextlib.contextmanager
def entered_at_once() -> Iterator[Any]:
    yield builder(tell_thread)
    print("left")
