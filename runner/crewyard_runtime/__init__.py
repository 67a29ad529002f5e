"""The API of the service for crews: `from crewyard_runtime import emit, ask`."""

from .events import emit

__all__ = ["InputRequired", "InputTimeout", "ask", "ask_async", "emit"]
_NAMES = {"InputRequired": "question", "InputTimeout": "ask", "ask": "ask", "ask_async": "ask"}


def __getattr__(name: str) -> object:
    """Import what asks a person when a crew uses it: most crews do not."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.questions.{_NAMES[name]}"), name)
