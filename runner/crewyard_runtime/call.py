"""Calls an entrypoint of any supported kind with the run's input. Called by `crew`."""

from __future__ import annotations

import sys

from .entrypoint import EntrypointNotFound
from .frameworks.call_options import CallOptions
from .signature import accepted_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .signature import AcceptedArguments

_AGENT_PACKAGES = (
    "agents",
    "pydantic_ai",
    "smolagents",
    "autogen_agentchat",
    "google.adk",
    "llama_index_instrumentation",
    "llama_index.core.instrumentation",
)
# Names of an only, optional parameter that does not get the input: what a graph or an agent is made of.
PART_NAMES = frozenset({"checkpointer", "debug", "llm", "model", "model_name", "saver", "tools", "verbose"})
_MAX_FACTORY_STEPS = 3  # such as a class that returns a crew that returns a graph


def call(target: Any, inputs: dict[str, object], options: CallOptions | None = None) -> object:
    """Call the entrypoint and return its result, awaited if needed. Raises EntrypointNotFound.

    Instantiates a class and calls a factory first, then calls what they return.
    """
    return _call(target, inputs, options or CallOptions(), _MAX_FACTORY_STEPS)


def _call(target: Any, inputs: dict[str, object], options: CallOptions, steps: int) -> object:
    for step in range(steps, 0, -1):
        if _is_graph(target):
            return _call_graph(target, inputs, options)
        runner = _callable_for(target, options)
        if runner is None:
            target = _new_instance(target) if isinstance(target, type) else _build(target)
            continue
        _refuse_options(target, options)
        value: Any = runner(inputs)
        if runner.__name__ != "function":
            return _resolve(value)
        value = _compiled(value)
        if hasattr(value, "__await__") or hasattr(value, "__aenter__"):
            import asyncio

            value = asyncio.run(_call_async(value, inputs, options, step))
            if not isinstance(value, _Target):
                return value
            target = value.target
        elif type(value).__module__ == "contextlib" and hasattr(value, "__enter__"):
            with value as target:
                return _call(target, inputs, options, step - 1)
        elif _is_runnable(value):
            target = value  # a function that builds a graph or a crew
        else:
            return _resolve(value)
    raise EntrypointNotFound(
        f"The entrypoint returns {type(target).__name__} after {_MAX_FACTORY_STEPS} steps, "
        "which cannot be run."
    )


class _Target:
    """A crew that an async function made, to call outside its event loop: kickoff may start one itself."""

    def __init__(self, target: object) -> None:
        self.target = target


async def _call_async(value: Any, inputs: dict[str, object], options: CallOptions, steps: int) -> object:
    """Await a coroutine or enter a context manager; call a graph that it gives in the same event loop."""
    if hasattr(value, "__await__"):
        result: Any = _compiled(await value)
        if _is_graph(result) and hasattr(result, "ainvoke"):
            from .frameworks import langgraph_call

            return await langgraph_call.ainvoke(result, inputs, options)
        if steps > 1 and hasattr(result, "__aenter__") and not _is_runnable(result):
            return await _call_async(result, inputs, options, steps - 1)
        return _Target(result) if _is_runnable(result) else result
    async with value as entered:
        target = _compiled(entered)
        if _is_graph(target) and hasattr(target, "ainvoke"):
            from .frameworks import langgraph_call

            return await langgraph_call.ainvoke(target, inputs, options)
        import asyncio

        return await asyncio.to_thread(_call, target, inputs, options, steps - 1)


def _call_graph(graph: Any, inputs: dict[str, object], options: CallOptions) -> object:
    from .frameworks import langgraph_call

    if langgraph_call.must_await(graph):
        import asyncio

        return asyncio.run(langgraph_call.ainvoke(graph, inputs, options))
    return _resolve(langgraph_call.invoke(graph, inputs, options))


def _is_graph(target: Any) -> bool:
    """Return whether the target is a graph of LangGraph or another object with `invoke`, but a command."""
    return (
        not isinstance(target, type)
        and not _is_command_line(target)
        and not callable(getattr(target, "kickoff", None))
        and callable(getattr(target, "invoke", None))
    )


def _is_command_line(target: Any) -> bool:
    """Return whether the target is a command line of click or typer, if the crew imported one of them."""
    if "click" not in sys.modules and "typer" not in sys.modules:
        return False
    from .script import is_command_line

    return is_command_line(target)


def _is_runnable(value: Any) -> bool:
    """Return whether a function's value is run in turn: a graph, a crew, or an object that makes its crew."""
    if _is_graph(value) or _object_runner(value) is not None:
        return True
    return not isinstance(value, type) and callable(getattr(value, "crew", None))


def _compiled(value: Any) -> Any:
    """Return the graph of a StateGraph that is not compiled, and any other value itself."""
    parts = (getattr(value, name, None) for name in ("add_node", "compile"))
    return value if isinstance(value, type) or not all(map(callable, parts)) else value.compile()


def _refuse_options(target: Any, options: CallOptions) -> None:
    """Raise ValueError if the run has options that only a graph takes."""
    if options.names and (_object_runner(target) is not None or options.framework != "langgraph"):
        raise ValueError(
            f"The run has {options.names}, which only graphs of LangGraph take; "
            "put the values into its input."
        )


def arguments(
    function: Callable[..., object], inputs: dict[str, object], given: dict[str, object] | None = None
) -> tuple[list[object], dict[str, object]]:
    """Return the arguments for `function`: inputs=…, one positional argument, or none, and those `given`.

    A function that requires several gets them by name. Raises EntrypointNotFound if the input lacks one.
    """
    accepted = accepted_arguments(function)
    if accepted is None:
        return [inputs], {}
    if given:
        more = [name for name in accepted.names if name not in given]
        wanted = [name for name in accepted.required if name in more]
        if "inputs" in more or wanted:
            return [], {**given, ("inputs" if "inputs" in more else wanted[0]): inputs}
        return [], given
    if accepted.named:
        _check_prompt(function, accepted)
    if "inputs" in accepted.names or (accepted.named and not accepted.required):
        return [], {"inputs": inputs}
    if len(accepted.required) > 1:
        missing = [name for name in accepted.required if name not in inputs or name not in accepted.names]
        if not missing:
            return [], {name: inputs[name] for name in accepted.names if name in inputs}
        name = getattr(function, "__qualname__", repr(function))
        raise EntrypointNotFound(
            f"{name} requires {', '.join(accepted.required)}; the run's input lacks {', '.join(missing)}. An "
            "entrypoint takes `inputs`, one argument, none, or several that the input has by their names."
        )
    if not accepted.required and len(accepted.positional) == 1 and accepted.positional[0] in PART_NAMES:
        return [], {}
    if (
        len(accepted.positional) == 1
        or (accepted.positional and accepted.required == accepted.positional[:1])
        or accepted.star
    ):
        return [inputs], {}
    return [], {}


def _check_prompt(function: Any, accepted: AcceptedArguments) -> None:
    """Raise EntrypointNotFound for an object that takes any name, so `inputs` too, but needs a prompt."""
    if "inputs" in accepted.names or accepted.positional[:1] != ["prompt"] or hasattr(function, "__name__"):
        return
    raise EntrypointNotFound(
        f"The entrypoint is {type(function).__name__}, an object that takes `prompt` and would not get the "
        "run's input. Name a function with the parameter `inputs` that calls it with a text."
    )


def _callable_for(target: Any, options: CallOptions) -> Callable[[dict[str, object]], object] | None:
    """Return a function that runs the target; None if it must be instantiated or built first."""
    if isinstance(target, type):
        return None
    runner = _object_runner(target)
    if runner is not None:
        return runner
    if _is_buildable(target):
        return None
    if not callable(target):
        raise EntrypointNotFound(
            f"The entrypoint is {type(target).__name__}, which is not a function and has neither "
            "kickoff nor invoke. "
            "Name a function, a CrewAI crew or flow, a LangGraph graph, or an agent."
        )

    def function(inputs: dict[str, object]) -> object:
        positional, named = arguments(target, inputs, _factory_arguments(target, options))
        if positional or named:
            return target(*positional, **named)
        return _call_without_arguments(target, inputs)

    return function


def _call_without_arguments(function: Callable[[], object], inputs: dict[str, object]) -> object:
    """Call a function that may parse the command line: its arguments are those of the input."""
    if "args" in inputs:
        from .script import set_arguments

        set_arguments(getattr(function, "__name__", "crew"), inputs)
    try:
        return function()
    except SystemExit as error:
        from .script import is_success

        if not is_success(error):
            raise
        return None


def _object_runner(target: Any) -> Callable[[dict[str, object]], object] | None:
    if isinstance(target, type):
        return None
    if callable(kickoff := getattr(target, "kickoff", None)):

        def start(inputs: dict[str, object]) -> object:
            accepted = accepted_arguments(kickoff)
            if accepted is not None and accepted.required == ["messages"]:  # of an agent of CrewAI
                from .frameworks.agents.prompts import prompt_of

                return kickoff(prompt_of(inputs))
            _check_placeholders(target, inputs)
            positional, named = arguments(kickoff, inputs)
            if not inputs and _is_flow(target):
                named.pop("inputs", None)
            return kickoff(*positional, **named)

        return start
    if _is_command_line(target):
        from .script import run_command_line

        return lambda inputs: run_command_line(target, inputs)
    prompts = _prompts_module()
    return prompts.runner_of(target) if prompts else None


def _prompts_module() -> Any:
    """Return the module of agents' prompts if the crew imported a framework that has them."""
    if not any(name in sys.modules for name in _AGENT_PACKAGES):
        return None
    from .frameworks.agents import prompts

    return prompts


def _new_instance(kind: type) -> object:
    workflows: Any = sys.modules.get(f"{__package__}.frameworks.agents.llama_index_workflows")
    instance: object = workflows.new_instance(kind) if workflows else kind()
    return instance


def _is_flow(target: object) -> bool:
    """Return whether the target is a CrewAI flow, whose state any input must suit, also an empty one."""
    return any(kind.__name__ == "Flow" for kind in type(target).__mro__)


def _factory_arguments(function: Any, options: CallOptions) -> dict[str, object]:
    if options.framework != "langgraph" and "langchain_core" not in sys.modules:
        return {}
    from .frameworks.langgraph_call import factory_arguments

    return factory_arguments(function, options)


def _check_placeholders(crew: Any, inputs: dict[str, object]) -> None:
    """Raise ValueError for a CrewAI crew that needs an input but gets none."""
    crewai = sys.modules.get(f"{__package__}.frameworks.crewai_values")  # loaded only with CrewAI
    if crewai and (names := crewai.missing_inputs(crew, inputs)):
        example = ", ".join(f'"{name}": …' for name in names)
        raise ValueError(f"The crew's tasks and agents need an input; start the run with {{{example}}}.")


def _is_buildable(target: Any) -> bool:
    return any(callable(getattr(target, name, None)) for name in ("crew", "compile"))


def _build(target: Any) -> Any:
    """Return the crew of a @CrewBase object, or the graph of a StateGraph that is not compiled."""
    return target.crew() if callable(getattr(target, "crew", None)) else target.compile()


def _resolve(value: Any) -> object:
    """Return the value itself, its awaited result, or the list of the items of a generator."""
    if hasattr(value, "__await__"):
        import asyncio

        async def wait() -> object:
            result: object = await value
            return result

        return asyncio.run(wait())
    if hasattr(value, "asend"):
        import asyncio

        async def gather() -> object:
            return [item async for item in value]

        return asyncio.run(gather())
    if hasattr(value, "send") and hasattr(value, "gi_frame"):
        return list(value)
    return value
