"""Invokes LangGraph graphs and LangChain runnables with config and context, and tells an unfinished graph.

Called by `call`. Uses attributes, not classes, since the frameworks move classes between versions.
"""

from __future__ import annotations

import sys

from ..questions.ask import is_possible
from ..questions.question import InputRequired, impossible
from ..signature import accepted_arguments
from .only_async import only_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .call_options import CallOptions

_NO_CHECKPOINTER = "the graph has no checkpointer, so it cannot go on after the answer"
_MAX_WRAPPERS = 10  # runnables around a graph
_FACTORY_TYPES = {"config": "RunnableConfig", "runtime": "ServerRuntime"}


class _EmptyContext(dict):  # type: ignore[type-arg]
    """A context without entries. LangGraph takes the first context that is true, else None."""

    def __bool__(self) -> bool:
        return True


def must_await(graph: Any) -> bool:
    """Return whether only `ainvoke` can run the graph."""
    return callable(getattr(graph, "ainvoke", None)) and only_async(graph)


def invoke(graph: Any, inputs: dict[str, object], options: CallOptions) -> object:
    """Return the result of the graph; a person answers its interrupts. Raises InputRequired if none can."""
    named, config = _arguments(graph, graph.invoke, options)
    value: object = graph.invoke(inputs, **named)
    stateful = _stateful(graph)
    state = _read(lambda: stateful.get_state(config)) if _has_state(stateful) else None
    while is_possible() and (waiting := _interrupts(state)):
        from . import langgraph_questions

        named["config"] = config = _next_config(config)
        value = graph.invoke(langgraph_questions.answer(waiting), **named)
        state = _read(lambda: stateful.get_state(config))  # noqa: B023
    _check_state(state)
    _check_callbacks(config)
    return value


async def ainvoke(graph: Any, inputs: dict[str, object], options: CallOptions) -> object:
    """Return the result of the graph, in the running event loop. Raises InputRequired as `invoke` does."""
    named, config = _arguments(graph, graph.ainvoke, options)
    value: object = await graph.ainvoke(inputs, **named)
    stateful = _stateful(graph)
    state = await _aread(stateful, config) if _has_state(stateful) else None
    while is_possible() and (waiting := _interrupts(state)):
        from . import langgraph_questions

        named["config"] = config = _next_config(config)
        value = await graph.ainvoke(await langgraph_questions.answer_async(waiting), **named)
        state = await _aread(stateful, config)
    _check_state(state)
    _check_callbacks(config)
    return value


async def _aread(graph: Any, config: dict[str, object]) -> object:
    try:
        state: object = await graph.aget_state(config)
    except Exception:  # a checkpointer that supports only get_state
        return None
    return state


def _interrupts(state: Any) -> list[Any]:
    """Return the interrupts at which the graph waits."""
    if not getattr(state, "next", None):
        return []
    return [item for task in getattr(state, "tasks", ()) for item in getattr(task, "interrupts", ())]


def _next_config(config: dict[str, object]) -> dict[str, object]:
    """Return the config of the next call of the same graph: LangChain's id of a call is used once."""
    import uuid

    _interrupted_at(config)
    return {**config, "run_id": uuid.uuid4()}


def factory_arguments(function: Callable[..., object], options: CallOptions) -> dict[str, object]:
    """Return the arguments `config` and `runtime` of a function that makes a graph.

    They are those of LangGraph's server. A parameter counts by its annotation, and in a project of LangGraph
    by its name.
    """
    accepted = accepted_arguments(function)
    annotations = getattr(function, "__annotations__", None) or {}
    given: dict[str, object] = {}
    for parameter in accepted.names if accepted is not None else ():
        annotation = str(annotations.get(parameter, ""))
        for name, type_name in _FACTORY_TYPES.items():
            if type_name in annotation or (parameter == name and options.framework == "langgraph"):
                given[parameter] = options.graph_config() if name == "config" else _server_runtime(options)
    return given


def _arguments(
    graph: Any, function: Callable[..., object], options: CallOptions
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the arguments besides the input, and the config among them."""
    accepted = accepted_arguments(function)
    config = options.graph_config()
    if accepted is None or "config" not in accepted.names:
        if options.names:
            kind = type(graph).__name__
            raise ValueError(f"The run has {options.names}, which {kind}.invoke does not take.")
        return {}, config
    named: dict[str, object] = {"config": config}
    if "context" in accepted.names:
        if options.context is not None or _takes_empty(getattr(graph, "context_schema", None)):
            named["context"] = dict(options.context or {}) or _EmptyContext()
    elif options.context is not None:  # LangGraph before 0.6: the context was a part of the config
        own = config["configurable"]
        config["configurable"] = {**options.context, **(own if isinstance(own, dict) else {})}
    if "langgraph" in sys.modules:
        inner = _unwrapped(graph)
        _watch(inner, config)
        _provide_store(inner)
    return named, config


def _unwrapped(graph: Any) -> Any:
    """Return the graph in a runnable that LangChain made of it (`bind`, `with_fallbacks`), else `graph`.

    Such a runnable reads the graph's attributes, but does not set them.
    """
    for _ in range(_MAX_WRAPPERS):
        fields = getattr(graph, "__dict__", {})
        graph = fields.get("bound", fields.get("runnable", graph))
    return graph


def _stateful(graph: Any) -> Any:
    """Return what has the state of the graph: not each runnable around it (`with_retry`) passes calls on."""
    return graph if hasattr(graph, "get_state") else _unwrapped(graph)


def _watch(graph: Any, config: dict[str, object]) -> None:
    """Prepare to notice that the graph stops before its end."""
    import uuid

    config.setdefault("run_id", uuid.uuid4())
    if getattr(graph, "checkpointer", True) is not None:
        return
    from . import langgraph_questions

    breakpoints = (getattr(graph, name, None) for name in ("interrupt_before_nodes", "interrupt_after_nodes"))
    # Without a checkpointer, a graph that stops at a breakpoint looks like one that has ended, and one that
    # stops at an interrupt cannot go on.
    if any(breakpoints) or (is_possible() and langgraph_questions.may_interrupt()):
        graph.checkpointer = langgraph_questions.memory_checkpointer()


def _provide_store(graph: Any) -> None:
    """Give a graph that was compiled without a store one for this run, as LangGraph's server does."""
    # A chat model has a field `store`, too.
    if getattr(graph, "store", True) is None and hasattr(graph, "checkpointer"):
        graph.store = _new_store()


def _new_store() -> object:
    from importlib import import_module

    try:
        return import_module("langgraph.store.memory").InMemoryStore()
    except ImportError:
        return None


def _takes_empty(schema: Any) -> bool:
    """Return whether an empty context suits the schema."""
    if not isinstance(schema, type):
        return False
    try:
        schema()
    except Exception:  # it has required fields; code of the crew may run here
        return False
    return True


def _has_state(graph: Any) -> bool:
    return not isinstance(getattr(graph, "checkpointer", None), (bool, type(None)))


def _read(read: Callable[[], object]) -> object:
    try:
        return read()
    except Exception:  # a checkpointer that supports only aget_state
        return None


def _check_state(state: Any) -> None:
    if not (waiting := getattr(state, "next", None)):
        return
    if stopped := _interrupts(state):
        raise InputRequired(impossible(getattr(stopped[0], "value", "")))
    raise InputRequired(
        f"The graph stopped before its end, at a breakpoint before {', '.join(map(str, waiting))[:300]}. "
        "A run does not continue there: remove interrupt_before and interrupt_after."
    )


def _interrupted_at(config: dict[str, object]) -> list[object] | None:
    """Return the questions at which the call of this config stopped, and forget them."""
    callbacks = sys.modules.get(f"{__package__}.langchain_callbacks")
    found: list[object] | None = None if callbacks is None else callbacks.interrupt_of(config.get("run_id"))
    return found


def _check_callbacks(config: dict[str, object]) -> None:
    question = _interrupted_at(config)
    if question is not None:
        raise InputRequired(impossible(question[0] if question else "", _NO_CHECKPOINTER))


def _server_runtime(options: CallOptions) -> object:
    """Return what LangGraph's server gives to a factory: the store and the run's context."""
    from importlib import import_module

    fields = {"access_context": "threads.create_run", "user": None, "store": _new_store()}
    fields["context"] = options.context
    try:
        return import_module("langgraph_sdk.runtime")._ExecutionRuntime(**fields)
    except (ImportError, AttributeError, TypeError):
        from types import SimpleNamespace

        runtime = SimpleNamespace(**fields)
        runtime.execution_runtime = runtime
        return runtime
