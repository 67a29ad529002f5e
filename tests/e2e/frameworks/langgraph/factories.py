"""Functions that make graphs, graphs with a context, and graphs that wait. Uploaded by test_frameworks.py."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypedDict

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
asking = builder(ask).compile()
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
