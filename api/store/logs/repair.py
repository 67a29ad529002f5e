"""Mends a log that the disk gave back otherwise than it was written.

What is readable is kept, with its numbers, and a line that says so stands where others are missing. Pure but
for `mend_files`. Called by event logs, build logs and `api.store.logs.event_archive`.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api.store.logs.journal import Record, is_record
from crds import names

LOST_TEXT = "… a piece of the build log cannot be read any more: its place on the disk is damaged\n"
LOST = "an event that was here cannot be read any more: its place on the disk is damaged"


@dataclass
class Mending:
    """What is known of a log so far: the runner's last number, how many records, how many are lost."""

    run: str
    seq: int = 0
    count: int = 0
    lost: int = 0
    _time: str = field(default="1970-01-01T00:00:00Z")

    def take(self, line: bytes) -> list[bytes]:
        """The lines that stand for one as it was read."""
        if not is_record(line):
            return []
        found: Record = json.loads(line)
        number = found.get("s")
        self._time = str((found.get("d") or {}).get("timestamp") or self._time)
        # The runner's numbers have no gaps: this tells how many events there were.
        gap = self.gap(max(0, number - self.seq - 1), True) if isinstance(number, int) else []
        if isinstance(number, int):
            self.seq = number
        self.count += 1
        return [*gap, line]

    def gap(self, missing: int, numbered: bool = False) -> list[bytes]:
        """The lines that stand for `missing` events."""
        self.lost += missing
        self.count += missing
        return [self._lost(self.seq + step if numbered else None) for step in range(1, missing + 1)]

    def _lost(self, seq: int | None) -> bytes:
        data: dict[str, Any] = {
            "run_id": names.id_of(self.run),
            "timestamp": self._time,
            "message": LOST,
            "level": "error",
        }
        record = {**({} if seq is None else {"s": seq}), "t": "log", "d": data}
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class BuildMending(Mending):
    """The same of a build log, whose chunks have numbers of their own in each container."""

    def take(self, line: bytes) -> list[bytes]:
        """As `Mending.take`."""
        if not is_record(line):
            return []
        self.count += 1
        return [line]

    def _lost(self, _seq: int | None) -> bytes:
        return json.dumps({"p": "", "c": "", "s": 0, "t": LOST_TEXT}).encode() + b"\n"


def mend(mending: Mending, lines: Iterable[bytes], up_to: int | None, upcoming: int | None) -> list[bytes]:
    """The lines of a segment, mended.

    `up_to` is the number of its last record, where that is known, `upcoming` the first of the runner's
    numbers behind it.
    """
    found: list[bytes] = []
    damaged = None
    for line in lines:
        taken = mending.take(line)
        if not taken and damaged is None:
            damaged = len(found)
        found.extend(taken)
    missing = 0 if up_to is None else max(0, up_to - mending.count)
    numbered = min(missing, max(0, upcoming - mending.seq - 1)) if upcoming else 0
    found += mending.gap(numbered, True)
    mending.seq += numbered
    place = len(found) if damaged is None else damaged
    found[place:place] = mending.gap(missing - numbered)
    return found


def mend_files(directory: Path, kind: type[Mending] = Mending) -> int:
    """Mends the segments in a directory, each in one step; gives how many lines are lost. Raises OSError."""
    mending = kind(directory.name)
    paths = sorted(directory.glob("*.log"))
    for place, path in enumerate(paths):
        behind = paths[place + 1 :]
        with path.open("rb") as file:
            before = file.readlines()
        after = mend(mending, before, int(behind[0].stem) - 1 if behind else None, _first_number(behind))
        if after != before:
            new = path.with_suffix(".new")
            with new.open("wb") as file:
                file.writelines(after)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
    return mending.lost


def _first_number(paths: list[Path]) -> int | None:
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                if is_record(line) and isinstance(number := json.loads(line).get("s"), int):
                    return number
    return None
