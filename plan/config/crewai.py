"""[tool.crewai] in pyproject.toml, written by CrewAI's tools. Called by plan.config.configuration.

It declares a type, whose class plan.discovery finds, or the file of a declarative crew or flow.
"""

from ..errors import CONFIG_INVALID, PlanError, join_limited
from .configuration import Configuration
from .toml_tables import TomlTable

_KINDS = ("crew", "flow")
# `project_id` identifies the project to CrewAI's own service.
_KNOWN = ("type", "definition", "project_id")


def read_crewai(table: TomlTable, crew: str | None) -> Configuration:
    """Return the configuration of the only crew or flow. Raises PlanError(ConfigInvalid)."""
    if crew is not None:
        raise PlanError(
            CONFIG_INVALID,
            f"crew {crew!r} is requested, but [tool.crewai] supports only one crew",
            f"Add a crew.toml with [deployments.{crew}], or omit the crew's name.",
        )
    kind = table.text_at("type", "crew") or "crew"
    if kind not in _KINDS:
        raise table.error("type", f"is {kind!r}", 'Write type = "crew" or type = "flow".')
    definition = table.text_at("definition", "crew.jsonc")
    unknown = table.unknown(*_KNOWN)
    return Configuration(
        origin=table.location("definition") if definition else f"{table.file}: [tool.crewai]",
        framework="crewai",
        entrypoint=definition,
        kind=kind,
        notes=(f"{table.file}: ignored keys: {join_limited(unknown)}",) if unknown else (),
    )
