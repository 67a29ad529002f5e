"""Artifacts as rows, the latest version per name. Called by the pods' routes and those of artifacts."""

from dataclasses import dataclass
from datetime import datetime

from api.store.database import Database
from api.store.page import Page


@dataclass(frozen=True)
class ArtifactRow:
    """A stored file of a run. `sha256` in hex serves as ETag; `blob` is its key in `Store.blobs`."""

    run: str
    name: str
    size: int
    sha256: str
    content_type: str
    partial: bool
    created_at: datetime
    blob: str


class Artifacts:
    """The table of artifacts of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, run: str, name: str) -> ArtifactRow | None:
        """One artifact of a run (object name), or None."""
        raise NotImplementedError

    async def page(self, run: str, offset: int, limit: int) -> Page[ArtifactRow]:
        """A page of a run's artifacts, newest first. All are partial where the run did not end by itself."""
        raise NotImplementedError
