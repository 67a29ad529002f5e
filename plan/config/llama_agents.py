"""[tool.llamadeploy] in pyproject.toml, written by LlamaIndex's tools. Called by plan.config.configuration.

It names the workflows that its own server would offer.
"""

from ..errors import CONFIG_INVALID, PlanError, join_limited
from .configuration import Configuration, NamedEntrypoint
from .toml_tables import TomlTable

_EXAMPLE = "tides.workflow:workflow"


def read_llama_agents(table: TomlTable, workflows: TomlTable, crew: str | None) -> Configuration:
    """Return the configuration; the entrypoint is the workflow `crew` (None: the first).

    Raises PlanError(ConfigInvalid).
    """
    names = tuple(workflows.values)
    if not names or (crew is not None and crew not in names):
        raise PlanError(
            CONFIG_INVALID,
            f"{table.file}: [tool.llamadeploy.workflows] has no {crew or 'workflow'}; "
            f"it has {join_limited(names) or 'none'}",
            f'Name one there, for example tides = "{_EXAMPLE}", or deploy with --crew NAME.',
        )
    named = [
        NamedEntrypoint(name, workflows.text_at(name, _EXAMPLE) or "", workflows.location(name))
        for name in sorted(names, key=lambda name: name != crew)
    ]
    unknown = table.unknown("workflows", "name")
    return Configuration(
        origin=named[0].origin,
        framework="python",
        entrypoint=named[0].entrypoint,
        name=named[0].name,
        named=tuple(named[1:]),
        notes=(f"{table.file}: ignored keys: {join_limited(unknown)}",) if unknown else (),
    )
