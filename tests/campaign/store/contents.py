"""The contents of an API server's store: rows of the index, and the files that they name.

Read from SQLite and the directories themselves, by no code of the product. Called by
`tests.campaign.store.snapshot`; the verdict is `tests.campaign.store.verdict`.
"""

import hashlib
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

BEGUN = re.compile(r".+#[0-9]+")
"""The name of a file in which a blob is written until it is whole."""
BUSY_SECONDS = 30


@dataclass(frozen=True)
class BlobFile:
    """A file among the blobs."""

    size: int
    sha256: str


@dataclass(frozen=True)
class StoredRow:
    """A row that names a blob: of an artifact, a sealed log or an upload."""

    what: str
    blob: str
    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class StoreContents:
    """All of it. Logs go by run, and by `deployment.uid`."""

    runs: Mapping[str, bool] = field(default_factory=dict)
    """Whether the log of each is sealed."""
    builds: frozenset[str] = frozenset()
    rows: tuple[StoredRow, ...] = ()
    announced: frozenset[str] = frozenset()
    """Uploads that have a row, whether their bytes came or not."""
    blobs: Mapping[str, BlobFile] = field(default_factory=dict)
    begun: frozenset[str] = frozenset()
    event_logs: frozenset[str] = frozenset()
    build_logs: frozenset[str] = frozenset()


def read(directory: Path, namespace: str) -> StoreContents:
    """The store in `directory`. Raises sqlite3.Error where the index cannot be read."""
    with closing(sqlite3.connect(directory / "index.sqlite3", timeout=BUSY_SECONDS)) as index:
        runs = {name: bool(sealed) for name, sealed in index.execute("SELECT name, sealed FROM runs")}
        builds = {f"{name}.{uid}" for name, uid in index.execute("SELECT name, uid FROM deployments")}
        artifacts = index.execute("SELECT run, name, blob, size, sha256 FROM artifacts").fetchall()
        archives = index.execute("SELECT run, blob, size FROM archives").fetchall()
        uploads = index.execute("SELECT id, blob, size, sha256, stored_at FROM uploads").fetchall()
    rows = [StoredRow(f"{name} of {run}", blob, size, sha256) for run, name, blob, size, sha256 in artifacts]
    rows += [StoredRow(f"the events of {run}", blob, size) for run, blob, size in archives]
    rows += [
        StoredRow(f"upload {name}", blob, size, sha256) for name, blob, size, sha256, at in uploads if at
    ]
    blobs: dict[str, BlobFile] = {}
    begun = set()
    place = directory / "blobs"
    for path in sorted(place.rglob("*")):
        if path.is_file():
            key = str(path.relative_to(place))
            if BEGUN.fullmatch(path.name):
                begun.add(key)
            else:
                data = path.read_bytes()
                blobs[key] = BlobFile(len(data), hashlib.sha256(data).hexdigest())
    return StoreContents(
        runs,
        frozenset(builds),
        tuple(rows),
        frozenset(upload[0] for upload in uploads),
        blobs,
        frozenset(begun),
        _logs(directory / "events" / namespace),
        _logs(directory / "buildlogs" / namespace),
    )


def _logs(directory: Path) -> frozenset[str]:
    return frozenset(path.parent.name for path in directory.glob("*/*/*.log"))
