"""An event of a run's log: its line of JSON, encoded once and parsed only for code that needs its data. Pure.

Called by the event logs and `api.store.logs.events`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from api.store.logs.journal import encode_record, record

_EVENT_LINE = re.compile(rb'\{(?:"[sv]":[0-9]+,)?"t":"([A-Za-z0-9_.-]+)","d":(\{.*\})\}\n?')
"""A line whose last field is `d`, as logs write it; a line of any other form is parsed."""


@dataclass(frozen=True, eq=False)
class StoredEvent:
    """An event's type and its data: parsed, as JSON, or both; `data` and `json` derive the other one once."""

    type: str
    parsed: Mapping[str, Any] | None = None
    encoded: bytes | None = None

    @classmethod
    def split(cls, line: bytes, parsed: Mapping[str, Any] | None = None) -> "StoredEvent":
        """Return the event of a line that this service wrote, without parsing it. Raises JournalDamaged.

        `parsed` is the record of the line, if the caller has it.
        """
        match = _EVENT_LINE.fullmatch(line)
        if match is None:
            parsed = parsed or record(line)
            return cls(parsed["t"], parsed["d"])
        return cls(match[1].decode(), parsed["d"] if parsed else None, match[2])

    @classmethod
    def check(cls, line: bytes) -> "StoredEvent":
        """Return the event of a line from a disk, which may be damaged. Raises JournalDamaged."""
        return cls.split(line, record(line))

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The data, which includes `run_id` and `timestamp`."""
        return json.loads(self.encoded or b"{}") if self.parsed is None else self.parsed

    @cached_property
    def json(self) -> bytes:
        """The data as one line of compact JSON, in ASCII."""
        return encode_record(dict(self.data)) if self.encoded is None else self.encoded
