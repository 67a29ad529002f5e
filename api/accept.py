"""Accepting a run: row first, then the object, then its uid into the row (nothing lost, nothing doubled).

Called by `POST /v1/runs`; what a crash left half done is completed by `api.background`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.index.idempotency import Idempotency
from api.store.index.runs import RunDetail
from api.store.store import Store
from crds.kube import Kube


@dataclass(frozen=True)
class RunRequest:
    """A checked request: project and deployment by object name, both known to the index."""

    project: str
    deployment: str
    input: Mapping[str, Any]
    entrypoint: str | None = None
    timeout: str | None = None


async def accept_run(
    store: Store, kube: Kube, request: RunRequest, now: datetime, idempotency: Idempotency | None = None
) -> RunDetail:
    """Accepts a run once: the row, the object and its uid are all there when this returns.

    The same idempotency gives the run it made before. Raises StoreUnavailable; Missing where the project is
    gone; Taken for another body; crds.errors.Invalid where the object is refused (the row is withdrawn) and
    Unavailable (withdrawn too, unless there is an idempotency key, with which the call can be repeated).
    """
    raise NotImplementedError
