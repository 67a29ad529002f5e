"""`python -m api backup TARGET`: a copy of the store in a directory, consistent, while it is served.

Files first, then the index, then the files that came meanwhile. The copy is whole if it has all that its
index names, which is checked; else the last two steps are repeated, since a file may have gone in between: an
older version of an artifact, a log that was sealed. Blocking; called by `api.__main__`.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from api.maintenance.backup_target import Target, open_target
from api.store.backend import INDEX

FOLDERS = ("blobs", "events", "buildlogs")
ATTEMPTS = 5


class BackupFailed(Exception):
    """There is no backup; the text says why."""


@dataclass
class Copied:
    """What is in the backup so far: size and lines of each file."""

    sizes: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def said(self, namespace: str, run: str) -> int:
        """How many lines of a run's log there are."""
        return self.lines.get(f"events/{namespace}/{run[-2:]}/{run}", 0)


def backup(data: Path, target: Target, blobs: bool = True) -> Copied:
    """Copies the store in `data`; the index comes last, so that half a backup has none.

    Without `blobs` these are in a bucket. Raises BackupFailed, OSError.
    """
    if not (data / INDEX).is_file():
        raise BackupFailed(f"{data / INDEX} is not there: is CREWYARD_DATA the directory of the service?")
    copied = Copied()
    _copy(data, target, copied)
    with tempfile.TemporaryDirectory(prefix="backup-", dir=data) as scratch:
        index = Path(scratch) / INDEX
        for _ in range(ATTEMPTS):
            _snapshot(data / INDEX, index)
            _copy(data, target, copied)
            missing = next(_missing(index, copied, blobs), None)
            if missing is None:
                target.add(INDEX, index)
                target.close()
                return copied
    raise BackupFailed(f"the store changes faster than it is copied: {missing} is not there; try again")


def _copy(data: Path, target: Target, copied: Copied) -> None:
    """Copies what is not there yet, or has grown."""
    for folder in FOLDERS:
        for path in sorted((data / folder).rglob("*")):
            name = path.relative_to(data).as_posix()
            # What the store is just writing has a name of its own until it is whole.
            if "#" in path.name or path.suffix == ".new" or not path.is_file():
                continue
            try:
                if copied.sizes.get(name) == path.stat().st_size:
                    continue
                size, lines = target.add(name, path, whole=folder != "blobs")
            except FileNotFoundError:
                continue
            copied.sizes[name] = size
            if folder == "events":
                place = path.relative_to(data).parent.as_posix()
                copied.lines[place] = copied.lines.get(place, 0) - copied.lines.get(name, 0) + lines
                copied.lines[name] = lines


def _snapshot(index: Path, to: Path) -> None:
    """The index as of one commit. Writers do not wait for it."""
    to.unlink(missing_ok=True)
    with closing(sqlite3.connect(index)) as source, closing(sqlite3.connect(to)) as copy:
        source.execute("pragma query_only = on")
        # In one step: in several it would begin anew whenever something is written.
        source.backup(copy)
        copy.execute("pragma journal_mode = delete")
        found = copy.execute("pragma quick_check").fetchone()[0]
    if found != "ok":
        raise BackupFailed(f"the index is damaged: {found}")


def _missing(index: Path, copied: Copied, blobs: bool) -> Iterator[str]:
    """What the index names and the backup has not."""
    with closing(sqlite3.connect(index)) as connection:
        if blobs:
            for query in (
                "select blob from artifacts",
                "select blob from archives",
                "select blob from uploads where stored_at is not null",
            ):
                for (key,) in connection.execute(query):
                    if f"blobs/{key}" not in copied.sizes:
                        yield f"the blob {key}"
        ended = (
            "select r.namespace, r.name, r.terminal_id - 2 from runs r "
            "join claims c on c.namespace = r.namespace and c.run = r.name "
            "left join archives a on a.namespace = r.namespace and a.run = r.name "
            "where r.terminal_id > 2 and a.run is null"
        )
        for namespace, run, said in connection.execute(ended):
            if copied.said(namespace, run) < said:
                yield f"the log of {run}"


def main(data: Path, database_url: str | None, blobs_url: str | None, arguments: list[str]) -> int:
    """The command. Gives the exit code."""
    if len(arguments) != 1:
        print("usage: python -m api backup DIRECTORY | FILE.tar | -", file=sys.stderr)
        return 2
    if database_url is not None:
        print("index and logs are in PostgreSQL: use pg_dump (docs/operations.md, Backup)", file=sys.stderr)
        return 2
    try:
        copied = backup(data, open_target(arguments[0]), blobs_url is None)
    except (BackupFailed, OSError, sqlite3.Error) as error:
        print(f"no backup: {error}", file=sys.stderr)
        return 1
    total = sum(copied.sizes.values())
    print(f"backup: the index and {len(copied.sizes)} files of {total} bytes", file=sys.stderr)
    if blobs_url is not None:
        print("artifacts and uploads are in the bucket, which is not in this backup", file=sys.stderr)
    return 0
