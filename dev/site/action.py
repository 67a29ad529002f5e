"""Inputs and outputs of a GitHub Action as tables, from action.yml. Pure. Called by `dev.site.sections`."""

from collections.abc import Mapping
from typing import Any

from dev.site.text import cell, code, table


def inputs(action: Mapping[str, Any]) -> str:
    """Return the table of inputs."""
    rows = []
    for name, definition in action["inputs"].items():
        needed = (
            "required"
            if str(definition.get("required")).lower() == "true"
            else code(definition.get("default") or "")
        )
        rows.append((code(name), needed, cell(definition["description"])))
    return table(("input", "default", "meaning"), rows)


def outputs(action: Mapping[str, Any]) -> str:
    """Return the table of outputs."""
    rows = [(code(name), cell(output["description"])) for name, output in action["outputs"].items()]
    return table(("output", "meaning"), rows)
