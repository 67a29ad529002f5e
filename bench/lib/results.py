"""The measurements that the documentation shows, a file of numbers each in bench/measurements. Called by `bench`.

`python -m bench --keep NAME` writes it anew, so that all rows of a measurement are of one run.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[1] / "measurements"
DIGITS = 6


def result_file(name: str, count: int | None) -> Path:
    """Where the numbers of a measurement lie, those of another count apart."""
    return DIRECTORY / (f"{name}.json" if count is None else f"{name}-{count}.json")


def write(
    name: str, count: int | None, started: datetime, machine: str, findings: Sequence[dict[str, Any]]
) -> Path:
    """Writes them; `machine` is what was told of it before the measurement began. Raises OSError."""
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
    """All that is kept, in no particular order. Raises OSError, ValueError."""
    return [json.loads(file.read_text()) for file in sorted(DIRECTORY.glob("*.json"))]


def _rounded(value: Any) -> Any:
    """The same with as many digits as say anything."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
