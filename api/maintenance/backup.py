"""`python -m api backup TARGET`: a consistent copy of the store while the API server runs.

Copies files, then the index, then files written meanwhile. The copy is complete if it has every file that its
index names. Otherwise the last two steps are repeated, since a file may have been deleted meanwhile: a
replaced version of an artifact, a sealed log. Blocking; called by `api.__main__`.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from api.maintenance.backup_target import BackupTarget, open_target
from api.store.backend import INDEX
from kube.owned_directory import owned_directory

FOLDERS = ("blobs", "events", "buildlogs")
MAX_ATTEMPTS = 5
SCRATCH_PREFIX = "backup-"
"""Of the directory beside the store where the index is copied to."""


class BackupFailed(Exception):
    """The backup failed; the message says why."""


@dataclass
class CopiedFiles:
    """Files in the backup so far: size and number of lines by name."""

    sizes: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def line_count(self, namespace: str, run: str) -> int:
        """Return the number of copied lines of a run's event log."""
        return self.lines.get(f"events/{namespace}/{run[-2:]}/{run}", 0)


def backup(data: Path, target: BackupTarget, blobs: bool = True) -> CopiedFiles:
    """Copy the store in `data`. Add the index last: an incomplete backup has no index.

    `blobs`: blobs are in `data`, not in a bucket. Raises BackupFailed, OSError.
    """
    if not (data / INDEX).is_file():
        raise BackupFailed(
            f"{data / INDEX} does not exist; set CREWYARD_DATA to the data directory of the API server"
        )
    copied = CopiedFiles()
    _copy(data, target, copied)
    with owned_directory(data, SCRATCH_PREFIX) as scratch:
        index = scratch / INDEX
        for _ in range(MAX_ATTEMPTS):
            _snapshot(data / INDEX, index)
            _copy(data, target, copied)
            missing = next(_missing(index, copied, blobs), None)
            if missing is None:
                target.add(INDEX, index)
                target.close()
                return copied
    raise BackupFailed(f"the store changes faster than it is copied: {missing} is missing; try again")


def _copy(data: Path, target: BackupTarget, copied: CopiedFiles) -> None:
    """Copy new files and files that have grown."""
    for folder in FOLDERS:
        for path in sorted((data / folder).rglob("*")):
            name = path.relative_to(data).as_posix()
            # Skip the temporary names of files that the store is writing.
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
                directory = path.relative_to(data).parent.as_posix()
                copied.lines[directory] = copied.lines.get(directory, 0) - copied.lines.get(name, 0) + lines
                copied.lines[name] = lines


def _snapshot(index: Path, target: Path) -> None:
    """Copy the index as of one commit without blocking writers."""
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(index)) as source, closing(sqlite3.connect(target)) as copy:
        source.execute("pragma query_only = on")
        # In one step: a backup in several steps restarts at every write.
        source.backup(copy)
        copy.execute("pragma journal_mode = delete")
        check = copy.execute("pragma quick_check").fetchone()[0]
    if check != "ok":
        raise BackupFailed(f"the index is damaged: {check}")


def _missing(index: Path, copied: CopiedFiles, blobs: bool) -> Iterator[str]:
    """Yield each blob and log that the index names and the backup lacks."""
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
        for namespace, run, expected_lines in connection.execute(ended):
            if copied.line_count(namespace, run) < expected_lines:
                yield f"the log of {run}"


def main(data: Path, database_url: str | None, blobs_url: str | None, arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    if len(arguments) != 1:
        print("usage: python -m api backup DIRECTORY | FILE.tar | -", file=sys.stderr)
        return 2
    if database_url is not None:
        print("index and logs are in PostgreSQL; use pg_dump (docs/operations.md, Backup)", file=sys.stderr)
        return 2
    try:
        copied = backup(data, open_target(arguments[0]), blobs_url is None)
    except (BackupFailed, OSError, sqlite3.Error) as error:
        print(f"backup failed: {error}", file=sys.stderr)
        return 1
    total = sum(copied.sizes.values())
    print(f"backup: the index and {len(copied.sizes)} files of {total} bytes", file=sys.stderr)
    if blobs_url is not None:
        print("not in this backup: artifacts and uploads, which are in the bucket", file=sys.stderr)
    return 0
