"""Repair of logs whose bytes on disk were damaged.

Keeps readable records with their numbers and inserts a line for each lost one. Pure except for
`repair_files`. Called by event logs, build logs and `api.store.logs.event_archive`.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api.store.logs.journal import Record, is_record
from crds import names

LOST_TEXT = "… a part of the build log is lost: the disk is damaged\n"
LOST = "an event is lost here: the disk is damaged"


@dataclass
class LogRepair:
    """The state of a repair: the runner's last number, how many records so far, how many of them are lost."""

    run: str
    seq: int = 0
    count: int = 0
    lost: int = 0
    _time: str = field(default="1970-01-01T00:00:00Z")

    def repair_line(self, line: bytes) -> list[bytes]:
        """Return the lines that replace one as read."""
        if not is_record(line):
            return []
        record: Record = json.loads(line)
        number = record.get("s")
        self._time = str((record.get("d") or {}).get("timestamp") or self._time)
        # The runner's numbers have no gaps: a jump tells how many events are lost.
        gap = self.gap(max(0, number - self.seq - 1), True) if isinstance(number, int) else []
        if isinstance(number, int):
            self.seq = number
        self.count += 1
        return [*gap, line]

    def gap(self, missing: int, numbered: bool = False) -> list[bytes]:
        """Return the lines that replace `missing` events."""
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


class BuildLogRepair(LogRepair):
    """The repair of a build log, whose chunks are numbered per container."""

    def repair_line(self, line: bytes) -> list[bytes]:
        """Implement `LogRepair.repair_line`."""
        if not is_record(line):
            return []
        self.count += 1
        return [line]

    def _lost(self, _seq: int | None) -> bytes:
        return json.dumps({"p": "", "c": "", "s": 0, "t": LOST_TEXT}).encode() + b"\n"


def repair_lines(
    repair: LogRepair, lines: Iterable[bytes], last_number: int | None, next_seq: int | None
) -> list[bytes]:
    """Return the repaired lines of a segment.

    `last_number` is the number of its last record, if known; `next_seq` the first of the runner's numbers in
    later segments.
    """
    repaired: list[bytes] = []
    damaged = None
    for line in lines:
        replacement = repair.repair_line(line)
        if not replacement and damaged is None:
            damaged = len(repaired)
        repaired.extend(replacement)
    missing = 0 if last_number is None else max(0, last_number - repair.count)
    numbered = min(missing, max(0, next_seq - repair.seq - 1)) if next_seq else 0
    repaired += repair.gap(numbered, True)
    repair.seq += numbered
    position = len(repaired) if damaged is None else damaged
    repaired[position:position] = repair.gap(missing - numbered)
    return repaired


def repair_files(directory: Path, kind: type[LogRepair] = LogRepair) -> int:
    """Repair the segments in a directory, each atomically; return how many lines are lost. Raises OSError."""
    repair = kind(directory.name)
    paths = sorted(directory.glob("*.log"))
    for index, path in enumerate(paths):
        later = paths[index + 1 :]
        with path.open("rb") as file:
            before = file.readlines()
        after = repair_lines(repair, before, int(later[0].stem) - 1 if later else None, _first_number(later))
        if after != before:
            new = path.with_suffix(".new")
            with new.open("wb") as file:
                file.writelines(after)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
    return repair.lost


def _first_number(paths: list[Path]) -> int | None:
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                if is_record(line) and isinstance(number := json.loads(line).get("s"), int):
                    return number
    return None
