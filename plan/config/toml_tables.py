"""Validated access to TOML tables, with file, line and key in every error.

Called by plan.config.configuration and plan.packages.dependencies.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import CONFIG_INVALID, PlanError, closest_match, join_limited
from ..source import Files, text_of


@dataclass(frozen=True)
class TomlTable:
    """One table: its file, its name there (`""` for the whole file) and its values."""

    file: str
    name: str
    values: Mapping[str, Any]
    text: str

    def location(self, key: str) -> str:
        """Return the location of `key` for messages: `crew.toml line 3: deployment.python`."""
        line = _line_of(self.text, self.name, key)
        position = self.file if line is None else f"{self.file} line {line}"
        return f"{position}: {self._full(key)}"

    def error(self, key: str, problem: str, hint: str) -> PlanError:
        """Return a ConfigInvalid error about `key`."""
        return PlanError(CONFIG_INVALID, f"{self.location(key)} {problem}", hint)

    def allow_only(self, *known: str) -> None:
        """Raise ConfigInvalid for the first key that is not in `known`, with the most similar known key."""
        for key in self.values:
            if key not in known:
                suggestion = closest_match(key, known)
                hint = (
                    f"Did you mean {suggestion!r}?" if suggestion else f"Known keys: {join_limited(known)}."
                )
                raise self.error(key, "is unknown", hint)

    def unknown(self, *known: str) -> list[str]:
        """Return the full names of the keys that are not in `known`."""
        return [self._full(key) for key in self.values if key not in known]

    def table(self, key: str) -> "TomlTable | None":
        """Return the table at `key`, or None. Raises ConfigInvalid for another type."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, "must be a table", f"Write [{self._full(key)}] with its keys below.")
        return TomlTable(self.file, self._full(key), value, self.text)

    def text_at(self, key: str, example: str) -> str | None:
        """Return the string at `key`, or None. Raises ConfigInvalid where it is empty or not a string."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, "must be a non-empty string", f'For example: {key} = "{example}".')
        return value

    def texts_at(self, key: str, example: str) -> tuple[str, ...]:
        """Return the list of strings at `key`, or an empty one. Raises ConfigInvalid for anything else."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.error(key, "must be a list of strings", f'For example: {key} = ["{example}"].')
        return tuple(value)

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def read_toml(files: Files, path: str) -> TomlTable:
    """Return the TOML file `path` as a table. Raises ConfigInvalid with line and column of a syntax error."""
    text = text_of(files, path)
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of more than 4,300 digits
        raise PlanError(
            CONFIG_INVALID, f"{path} is not valid TOML: {error}", f"Correct {path} at that position."
        ) from None
    return TomlTable(path, "", values, text)


def _line_of(text: str, table: str, key: str) -> int | None:
    """Return the line of `key` in `table`, or None; handles simple TOML only."""
    current_table = ""
    assignment = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
    full = f"{table}.{key}" if table else key
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header and "=" not in line.split("#")[0]:
            current_table = header.group(1).replace('"', "").replace("'", "").replace(" ", "")
            if current_table == full or current_table.startswith(full + "."):
                return number
        elif current_table == table and assignment.match(line):
            return number
    return None
