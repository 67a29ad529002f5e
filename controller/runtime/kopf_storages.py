"""Kopf storages that store nothing.

Our handlers take every event as it is. By default Kopf copies each object several times for a
diff that we do not use, which is half of the cost of an event. Called by `controller.runtime.kopf_watch`.
"""

from collections.abc import Iterable
from typing import Any

import kopf


class NullDiffBaseStorage(kopf.DiffBaseStorage):
    """Diff-base storage without a last state: nothing is compared or written."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """Return an empty essence, equal to every other one."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Return None."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


class NullProgressStorage(kopf.ProgressStorage):
    """Progress storage without progress: our handlers finish when they return."""

    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        """Return None."""

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Remove nothing."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Write nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return the essence unchanged: it holds no progress."""
        return essence
