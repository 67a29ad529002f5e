"""The key `smoke` of a crew's table: the run that must succeed before a deployment becomes active.

Called by plan.config.configuration.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from .toml_tables import TomlTable

# The whole plan must fit into a build pod's termination message.
_MAX_INPUT_BYTES = 1024
_EXAMPLE = 'smoke = { input = { topic = "tides" }, timeout = "2m" }'


def read_smoke(crew: TomlTable, read_duration: Callable[[TomlTable], str | None]) -> Mapping[str, Any] | None:
    """Return `{input, timeout}`, each only if it is set; None without the key. Raises PlanError.

    `read_duration` returns the table's key `timeout`.
    """
    table = crew.table("smoke")
    if table is None:
        return None
    table.allow_only("input", "timeout")
    smoke: dict[str, Any] = {}
    if (given := table.table("input")) is not None:
        smoke["input"] = _checked_input(table, given.values)
    if (timeout := read_duration(table)) is not None:
        smoke["timeout"] = timeout
    return smoke


def _checked_input(table: TomlTable, given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError):
        raise table.error(
            "input", "has a date, nan or inf, which JSON does not have", f"For example: {_EXAMPLE}."
        ) from None
    if size > _MAX_INPUT_BYTES:
        raise table.error(
            "input",
            f"has {size} bytes as JSON",
            f"Use at most {_MAX_INPUT_BYTES}; larger values can be files of the repository.",
        )
    return dict(given)
