"""Measurements shown in the documentation, one JSON file each in bench/measurements. Called by `bench`.

`python -m bench --keep NAME` replaces the whole file, so all rows of a measurement are from one run.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[1] / "measurements"
SIGNIFICANT_DIGITS = 6


def result_file(name: str, count: int | None) -> Path:
    """Return the file of a measurement; another count has a separate file."""
    return DIRECTORY / (f"{name}.json" if count is None else f"{name}-{count}.json")


def write(
    name: str, count: int | None, started: datetime, machine: str, findings: Sequence[dict[str, Any]]
) -> Path:
    """Write the findings; `machine` is the description from before the measurement. Raises OSError."""
    DIRECTORY.mkdir(exist_ok=True)
    file = result_file(name, count)
    command = name if count is None else f"{name}={count}"
    document = {
        "command": command,
        "begun": started.isoformat(timespec="seconds"),
        "machine": machine,
        "findings": _rounded(list(findings)),
    }
    file.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    return file


def read_all() -> list[dict[str, Any]]:
    """Return all stored measurements, unordered. Raises OSError, ValueError."""
    return [json.loads(file.read_text()) for file in sorted(DIRECTORY.glob("*.json"))]


def _rounded(value: Any) -> Any:
    """Return the value with significant digits only."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
