"""Calls an entrypoint of any kind with the run's input. Called by `crew`."""

from __future__ import annotations

import sys

from .entrypoint import NotFound
from .signature import takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FACTORIES = 3  # a class that gives a crew that gives a graph is as far as it goes


def call(found: Any, inputs: dict[str, object]) -> object:
    """What the crew returns, awaited where it is awaitable. Raises NotFound for what cannot be called.

    A class is made first, a factory called first: what they give is then called in its turn.
    """
    for _ in range(_FACTORIES):
        way = _way(found)
        if way is None:
            found = found() if isinstance(found, type) else _opened(found)
            continue
        value = _finished(way(inputs))
        if way.__name__ == "function" and _way_of_object(value) is not None:
            found = value  # a function that builds a graph or a crew
            continue
        return value
    raise NotFound(
        f"The entrypoint gives {type(found).__name__} after {_FACTORIES} steps, nothing that can be run."
    )


def arguments(
    function: Callable[..., object], inputs: dict[str, object]
) -> tuple[list[object], dict[str, object]]:
    """How `function` takes the input: as inputs=…, as its one argument, or not at all. Raises NotFound."""
    taken = takes(function)
    if taken is None:
        return [inputs], {}
    if taken.named or "inputs" in taken.names:
        return [], {"inputs": inputs}
    if len(taken.required) > 1:
        name = getattr(function, "__qualname__", repr(function))
        wants = ", ".join(taken.required)
        raise NotFound(f"{name} requires {wants}: an entrypoint takes `inputs`, one argument, or none.")
    if (
        len(taken.positional) == 1
        or (taken.positional and taken.required == taken.positional[:1])
        or taken.star
    ):
        return [inputs], {}
    return [], {}


def _way(found: Any) -> Callable[[dict[str, object]], object] | None:
    """How to run it, or None where it must be made or opened first."""
    if isinstance(found, type):
        return None
    way = _way_of_object(found)
    if way is not None:
        return way
    if _opens(found):
        return None
    if not callable(found):
        raise NotFound(
            f"The entrypoint is {type(found).__name__}, which is no function and has neither "
            "kickoff nor invoke. "
            "Name a function, a CrewAI crew or flow, or a LangGraph graph."
        )

    def function(inputs: dict[str, object]) -> object:
        positional, named = arguments(found, inputs)
        return found(*positional, **named)

    return function


def _way_of_object(found: Any) -> Callable[[dict[str, object]], object] | None:
    if isinstance(found, type):
        return None
    if callable(kickoff := getattr(found, "kickoff", None)):

        def start(inputs: dict[str, object]) -> object:
            _check_placeholders(found, inputs)
            positional, named = arguments(kickoff, inputs)
            return kickoff(*positional, **named)

        return start
    if callable(invoke := getattr(found, "invoke", None)):
        if callable(asynchronous := getattr(found, "ainvoke", None)):
            from .frameworks.only_async import only_async

            if only_async(found):
                return lambda inputs: asynchronous(inputs)
        return lambda inputs: invoke(inputs)
    return None


def _check_placeholders(crew: Any, inputs: dict[str, object]) -> None:
    """Raises ValueError for a CrewAI crew that asks for an input and gets none."""
    crewai = sys.modules.get(f"{__package__}.crewai_values")  # loaded where CrewAI is
    if crewai and (names := crewai.unfilled(crew, inputs)):
        asked = ", ".join(f'"{name}": …' for name in names)
        raise ValueError(f"The crew's tasks and agents need an input; start the run with {{{asked}}}.")


def _opens(found: Any) -> bool:
    return any(callable(getattr(found, name, None)) for name in ("crew", "compile"))


def _opened(found: Any) -> Any:
    """The crew of a @CrewBase object, the graph of a StateGraph that nobody compiled."""
    return found.crew() if callable(getattr(found, "crew", None)) else found.compile()


def _finished(value: Any) -> object:
    """The value itself, what it awaits, or the list of what a generator gives."""
    if hasattr(value, "__await__"):
        import asyncio

        async def wait() -> object:
            result: object = await value
            return result

        return asyncio.run(wait())
    if hasattr(value, "asend"):
        import asyncio

        async def gather() -> object:
            return [one async for one in value]

        return asyncio.run(gather())
    if hasattr(value, "send") and hasattr(value, "gi_frame"):
        return list(value)
    return value
