"""What the projector does with each of our kinds. Called by `api.maintenance.loops`."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import Table

from api.projection.list_watch import Projection
from api.store.index import object_versions
from api.store.sql import schema
from api.store.store import Store
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.objects import Deployment, Project, Run
from kube.client import Object


def projects(store: Store) -> Projection:
    """Projects: a deleted one takes all that belonged to it along."""

    async def apply(item: Object) -> None:
        await store.projects.observe(Project(item))

    async def gone(name: str, uid: str) -> None:
        await store.projects.remove(name, uid, datetime.now(UTC))

    return Projection(PROJECT, apply, gone, store.projects.known, forget=_forgetting(store, schema.projects))


def deployments(store: Store) -> Projection:
    """Deployments."""

    async def apply(item: Object) -> None:
        await store.deployments.observe(Deployment(item))

    return Projection(
        DEPLOYMENT,
        apply,
        store.deployments.remove,
        store.deployments.known,
        forget=_forgetting(store, schema.deployments),
    )


def runs(store: Store) -> Projection:
    """Runs: a live one whose object is gone ends as canceled."""

    async def apply(item: Object) -> None:
        await store.record.observe(Run(item), datetime.now(UTC))

    async def gone(name: str, uid: str) -> None:
        await store.record.vanish(name, uid, datetime.now(UTC))

    return Projection(RUN, apply, gone, store.record.present, forget=_forgetting(store, schema.runs))


def _forgetting(store: Store, table: Table) -> Callable[[], Awaitable[None]]:
    async def forget() -> None:
        await object_versions.forget(store.database, store.namespace, table)

    return forget
