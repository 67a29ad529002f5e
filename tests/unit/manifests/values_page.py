"""Table of the chart's values in docs/installation.md, from values.yaml and its schema.

`python tests/unit/manifests/values_page.py` writes it; a test checks that the page is current.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "manifests" / "chart"
PAGE = ROOT / "docs" / "installation.md"
BEGIN, END = "<!-- values: made from manifests/chart/values.yaml -->\n", "<!-- end of values -->"
WHOLE = ("limits", "pods", "resources")
"""Values with one row each, despite nested values."""


def rows(schema: dict[str, Any], values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, default and description of each value."""
    for name, part in schema["properties"].items():
        if name == "global":
            continue
        if "properties" in part and name not in WHOLE:
            yield from rows(part, values[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(values[name]), part["description"]


def table() -> str:
    """Return the table as Markdown."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    lines = ["| value | default | meaning |", "| --- | --- | --- |"]
    for name, default, meaning in rows(schema, values):
        default_cell = f"`{default}`" if len(default) < 100 else "see values.yaml"
        lines.append(f"| `{name}` | {default_cell} | {meaning} |")
    return "\n".join(lines) + "\n"


def in_page(page: str) -> tuple[str, str, str]:
    """Return the page before the table, the table, and the rest."""
    before, _, remainder = page.partition(BEGIN)
    table_text, _, after = remainder.partition(END)
    return before, table_text, after


if __name__ == "__main__":
    before, _, after = in_page(PAGE.read_text())
    PAGE.write_text(before + BEGIN + table() + END + after)
