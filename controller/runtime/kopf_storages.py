"""What Kopf would keep of an object to tell later what changed: nothing.

Our handlers want every event as it is. By default Kopf copies each object several times
for a comparison that nobody asks for, which is half of what an event costs. Called by
`controller.runtime.kopf_watch`.
"""

from collections.abc import Iterable
from typing import Any

import kopf


class NoEssence(kopf.DiffBaseStorage):
    """No last state of an object: none is compared, none is written."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """An empty essence, equal to every other one."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """None was stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Stores nothing."""


class NoProgress(kopf.ProgressStorage):
    """No progress of handlers: ours are done when they return."""

    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        """None was stored."""

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Stores nothing."""

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing is there to be removed."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Writes nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """The essence as it is: there is no progress in it."""
        return essence
