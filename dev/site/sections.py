"""Generated sections of pages; each mark in a page stands for one of them.

The site build replaces `<!-- generated: fields run spec -->` with content from the code. Called by
`dev.site.hooks`, and by tests of the pages' content.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from api.openapi.document import document
from api.openapi.routes import OPERATIONS
from crewyard.cli.main import program
from dev.site import action, calls, commands, fields

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"^<!-- generated: (.+?) -->$", re.MULTILINE)


def fill(page: str) -> str:
    """Return the page with its marks replaced. Raises KeyError for an unknown mark."""
    return MARK.sub(lambda match: render_section(match[1]), page)


def render_section(mark: str) -> str:
    """Return one section for the words of its mark, such as `fields run spec`."""
    name, *arguments = mark.split()
    return _SECTIONS[name](*arguments)


def description() -> dict[str, Any]:
    """Return the OpenAPI document with an example address."""
    return document(OPERATIONS, "https://crewyard.example.com")


def version(kind: str) -> dict[str, Any]:
    """Return the only version of a CRD."""
    definition: dict[str, Any] = yaml.safe_load((ROOT / "crds" / f"{kind}.yaml").read_text())["spec"][
        "versions"
    ][0]
    return definition


def action_file(name: str) -> dict[str, Any]:
    """Return the definition of a GitHub Action."""
    definition: dict[str, Any] = yaml.safe_load((ROOT / "actions" / name / "action.yml").read_text())
    return definition


def decisions() -> str:
    """Return a list of the decisions, by their headings."""
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    lines = [f"- [{page.read_text().partition(chr(10))[0].lstrip('# ')}]({page.name})" for page in pages]
    return "\n".join(lines) + "\n"


_SECTIONS: dict[str, Callable[..., str]] = {
    "fields": lambda kind, part: fields.render(version(kind), part),
    "refusals": lambda kind: fields.refusals(version(kind)),
    "columns": lambda kind: fields.columns(version(kind)),
    "decisions": decisions,
    "calls": lambda: calls.render(description()),
    "objects": lambda: calls.schemas(description()),
    "commands": lambda: commands.render(program, "crewyard"),
    "options": lambda: commands.options(program),
    "inputs": lambda name: action.inputs(action_file(name)),
    "outputs": lambda name: action.outputs(action_file(name)),
}
