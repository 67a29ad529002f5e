"""Tables of a TOML file, read key by key so that every complaint can name file, line and key.

Used by plan.config.configuration and plan.packages.dependencies.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import CONFIG_INVALID, PlanError, listed, nearest
from ..source import Files, text_of


@dataclass(frozen=True)
class Table:
    """One table: its values, the file it stands in and its name there (`""` for the whole file)."""

    file: str
    name: str
    values: Mapping[str, Any]
    text: str

    def at(self, key: str) -> str:
        """Where `key` stands, for people: `crew.toml line 3: deployment.python`."""
        line = _line_of(self.text, self.name, key)
        where = self.file if line is None else f"{self.file} line {line}"
        return f"{where}: {self._full(key)}"

    def wrong(self, key: str, problem: str, hint: str) -> PlanError:
        """A ConfigInvalid about `key`."""
        return PlanError(CONFIG_INVALID, f"{self.at(key)} {problem}", hint)

    def only(self, *known: str) -> None:
        """Raises ConfigInvalid for the first key that is not one of `known`, naming the nearest of them."""
        for key in self.values:
            if key not in known:
                meant = nearest(key, known)
                hint = f"Did you mean {meant!r}?" if meant else f"Known here: {listed(known)}."
                raise self.wrong(key, "is not known", hint)

    def table(self, key: str) -> "Table | None":
        """The table below `key`, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table", f"Write [{self._full(key)}] and its keys below it.")
        return Table(self.file, self._full(key), value, self.text)

    def word(self, key: str, example: str) -> str | None:
        """The text at `key`, or None. Raises ConfigInvalid where it is empty or no text."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, "must be a text that is not empty", f'For example: {key} = "{example}".')
        return value

    def words(self, key: str, example: str) -> tuple[str, ...]:
        """The list of texts at `key`, empty where there is none. Raises ConfigInvalid for anything else."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.wrong(key, "must be a list of texts", f'For example: {key} = ["{example}"].')
        return tuple(value)

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def read_toml(files: Files, path: str) -> Table:
    """The whole of the TOML file `path`. Raises ConfigInvalid with line and column where it is broken."""
    text = text_of(files, path)
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(
            CONFIG_INVALID, f"{path} is not valid TOML: {error}", f"Correct {path} at the place named."
        ) from None
    return Table(path, "", values, text)


def _line_of(text: str, table: str, key: str) -> int | None:
    """The line on which `key` of `table` is written, as far as simple TOML goes."""
    inside = ""
    assignment = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
    full = f"{table}.{key}" if table else key
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header and "=" not in line.split("#")[0]:
            inside = header.group(1).replace('"', "").replace("'", "").replace(" ", "")
            if inside == full or inside.startswith(full + "."):
                return number
        elif inside == table and assignment.match(line):
            return number
    return None
