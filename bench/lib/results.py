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


def file_of(name: str, count: int | None) -> Path:
    """Where the numbers of a measurement lie, those of another count apart."""
    return DIRECTORY / (f"{name}.json" if count is None else f"{name}-{count}.json")


def keep(
    name: str, count: int | None, begun: datetime, machine: str, findings: Sequence[dict[str, Any]]
) -> Path:
    """Writes them; `machine` is what was told of it before the measurement began. Raises OSError."""
    DIRECTORY.mkdir(exist_ok=True)
    file = file_of(name, count)
    command = name if count is None else f"{name}={count}"
    found = {
        "command": command,
        "begun": begun.isoformat(timespec="seconds"),
        "machine": machine,
        "findings": _rounded(list(findings)),
    }
    file.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n")
    return file


def taken() -> list[dict[str, Any]]:
    """All that is kept, in no particular order. Raises OSError, ValueError."""
    return [json.loads(file.read_text()) for file in sorted(DIRECTORY.glob("*.json"))]


def _rounded(value: Any) -> Any:
    """The same with as many digits as say anything."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
