"""Calls an entrypoint of any supported kind with the run's input. Called by `crew`."""

from __future__ import annotations

import sys

from .entrypoint import EntrypointNotFound
from .signature import accepted_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_FACTORY_STEPS = 3  # such as a class that returns a crew that returns a graph


def call(target: Any, inputs: dict[str, object]) -> object:
    """Call the entrypoint and return its result, awaited if needed. Raises EntrypointNotFound.

    Instantiates a class and calls a factory first, then calls what they return.
    """
    for _ in range(_MAX_FACTORY_STEPS):
        runner = _callable_for(target)
        if runner is None:
            target = target() if isinstance(target, type) else _build(target)
            continue
        value = _resolve(runner(inputs))
        if runner.__name__ == "function" and _object_runner(value) is not None:
            target = value  # a function that builds a graph or a crew
            continue
        return value
    raise EntrypointNotFound(
        f"The entrypoint returns {type(target).__name__} after {_MAX_FACTORY_STEPS} steps, "
        "which cannot be run."
    )


def arguments(
    function: Callable[..., object], inputs: dict[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Return the arguments for `function`: inputs=…, one positional argument, or none.

    Raises EntrypointNotFound if it requires several arguments.
    """
    accepted = accepted_arguments(function)
    if accepted is None:
        return [inputs], {}
    if accepted.named or "inputs" in accepted.names:
        return [], {"inputs": inputs}
    if len(accepted.required) > 1:
        name = getattr(function, "__qualname__", repr(function))
        required = ", ".join(accepted.required)
        raise EntrypointNotFound(
            f"{name} requires {required}: an entrypoint takes `inputs`, one argument, or none."
        )
    if (
        len(accepted.positional) == 1
        or (accepted.positional and accepted.required == accepted.positional[:1])
        or accepted.star
    ):
        return [inputs], {}
    return [], {}


def _callable_for(target: Any) -> Callable[[dict[str, object]], object] | None:
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
            "Name a function, a CrewAI crew or flow, or a LangGraph graph."
        )

    def function(inputs: dict[str, object]) -> object:
        positional, named = arguments(target, inputs)
        return target(*positional, **named)

    return function


def _object_runner(target: Any) -> Callable[[dict[str, object]], object] | None:
    if isinstance(target, type):
        return None
    if callable(kickoff := getattr(target, "kickoff", None)):

        def start(inputs: dict[str, object]) -> object:
            _check_placeholders(target, inputs)
            positional, named = arguments(kickoff, inputs)
            return kickoff(*positional, **named)

        return start
    if callable(invoke := getattr(target, "invoke", None)):
        if callable(asynchronous := getattr(target, "ainvoke", None)):
            from .frameworks.only_async import only_async

            if only_async(target):
                return lambda inputs: asynchronous(inputs)
        return lambda inputs: invoke(inputs)
    return None


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
