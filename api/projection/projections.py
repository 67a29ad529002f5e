"""Projections of Projects, Deployments and Runs into the index.

Called by `api.maintenance.loops` and `api.projection.resync`.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import Table

from api.projection.list_watch import Projection
from api.projection.stray_runs import StrayRuns
from api.questions.answers import OnAnswer, apply_object_answers
from api.store.index import object_versions
from api.store.sql import schema
from api.store.store import Store
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.objects import Deployment, Project, Run
from kube.client import Object


def projects(store: Store, place: str | None = None) -> Projection:
    """Return the projection of the Projects of a namespace, None for the installation's own.

    Deleting one starts the deletion of its records, which the next list starts again if it fails.
    """

    async def apply(item: Object) -> None:
        await store.projects.observe(Project(item))

    async def delete(name: str, uid: str) -> None:
        store.projects.start_removal(name, uid, datetime.now(UTC))

    return Projection(
        PROJECT,
        apply,
        delete,
        lambda: store.projects.resource_versions(place),
        invalidate=_version_invalidator(store, schema.projects),
    )


def deployments(store: Store, place: str | None = None) -> Projection:
    """Return the projection of the Deployments of a namespace."""

    async def apply(item: Object) -> None:
        await store.deployments.observe(Deployment(item))

    return Projection(
        DEPLOYMENT,
        apply,
        store.deployments.remove,
        lambda: store.deployments.resource_versions(place),
        invalidate=_version_invalidator(store, schema.deployments),
    )


def runs(
    store: Store,
    on_answer: OnAnswer = lambda: None,
    place: str | None = None,
    strays: StrayRuns | None = None,
) -> Projection:
    """Return the projection of the Runs of a namespace. A live run whose object is deleted ends as canceled.

    Answers in an object are stored, with a call of `on_answer` for each. Ended objects without a row are put
    into `strays`.
    """

    async def apply(item: Object) -> None:
        run = Run(item)
        has_row = await store.run_writer.observe(run, datetime.now(UTC))
        if strays is not None and not has_row:
            strays.note(run, place)
        await apply_object_answers(store, run, datetime.now(UTC), on_answer)

    async def delete(name: str, uid: str) -> None:
        if strays is not None:
            strays.remove(uid)
        await store.run_writer.mark_deleted(name, uid, datetime.now(UTC))

    return Projection(
        RUN,
        apply,
        delete,
        lambda: store.run_writer.present(place),
        invalidate=_version_invalidator(store, schema.runs),
    )


def _version_invalidator(store: Store, table: Table) -> Callable[[], Awaitable[None]]:
    async def invalidate() -> None:
        await object_versions.reset_versions(store.database, store.namespace, table)

    return invalidate
