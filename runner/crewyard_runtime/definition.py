"""Loads an entrypoint that is a declarative crew (JSON) or flow (YAML) of CrewAI. Called by `crew`."""

from __future__ import annotations

from .entrypoint import EntrypointNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load_definition(path: str) -> tuple[Any, dict[str, object]]:
    """Return the crew or flow, and the default inputs that the file declares.

    Raises EntrypointNotFound without such a file or with an older CrewAI, or any error of CrewAI.
    """
    try:
        with open(path, "rb") as file:
            is_flow = b"crewai.flow/" in file.read() or path.endswith((".yaml", ".yml"))
    except OSError as error:
        raise EntrypointNotFound(
            f"The entrypoint {path!r} cannot be read ({error.strerror}). "
            "Correct `entrypoint` in the configuration file."
        ) from None
    try:
        if is_flow:
            from crewai.flow.flow import Flow  # type: ignore[import-not-found]

            return Flow.from_declaration(path=path), {}
        from crewai.project.crew_loader import load_crew  # type: ignore[import-not-found]
    except (ModuleNotFoundError, AttributeError) as error:
        raise EntrypointNotFound(
            f"The entrypoint {path!r} needs a CrewAI that reads declarative crews and flows ({error}). "
            "Require crewai>=1.15."
        ) from None
    crew, defaults = load_crew(path)
    return crew, dict(defaults or {})
