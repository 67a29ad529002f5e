"""Sends the spans of ended runs and builds to a collector. Started by `api.maintenance.loops` in the leader.

An export that is not removed from the index, since the process ended, is made again, with the same ids.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import structlog

from api.config import ApiConfig
from api.outbound.guarded_post import GuardedPoster, PostFailed
from api.prices import Prices
from api.store.errors import Missing, StoreUnavailable
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from api.store.index.trace_exports import RUN, TraceExport
from api.store.store import Store
from api.telemetry.attempt import ExportAttempt, ExportResult, of_status, pause_seconds
from api.telemetry.build_spans import build_spans
from api.telemetry.run_spans import run_spans
from api.telemetry.settings import TelemetrySettings
from api.telemetry.span import Attributes, Span
from api.telemetry.steps import StepReader
from crds.runs import trace_context
from egress.addresses import AddressRules

log = structlog.get_logger()

MAX_PARALLEL_EXPORTS = 4
POLL_SECONDS = 2.0
BUSY_SECONDS = 0.05
"""Pause while there is more to export; leaves the store to other writers."""
PURGE_INTERVAL_SECONDS = 60.0
EVENTS_PER_READ = 200
MAX_RESPONSE_BYTES = 65536
OnExport = Callable[[str, int], None]
"""Called with a result and how many runs and builds have it."""


async def export_all(
    store: Store, config: ApiConfig, on_export: OnExport = lambda result, count: None
) -> None:
    """Export what is due until cancelled; nothing without a collector."""
    if config.telemetry is None:
        await asyncio.Event().wait()
        return
    poster = GuardedPoster(AddressRules.parse(config.net_allow, config.net_deny))
    try:
        await TraceExporter(store, config.telemetry, poster, on_export, config.prices).run()
    finally:
        poster.close()


class TraceExporter:
    """Makes exports, several at a time; after a failure one at a time, with growing pauses."""

    def __init__(
        self,
        store: Store,
        settings: TelemetrySettings,
        poster: GuardedPoster,
        on_export: OnExport = lambda result, count: None,
        prices: Prices | None = None,
    ) -> None:
        self._store, self._settings, self._poster = store, settings, poster
        self._on_export, self._prices = on_export, prices
        self._failures = 0

    async def run(self) -> None:
        """Export what is due until cancelled, and remove what is too old."""
        loop = asyncio.get_running_loop()
        purge_at = loop.time()
        while True:
            if loop.time() >= purge_at:
                await self.purge(datetime.now(UTC))
                purge_at = loop.time() + PURGE_INTERVAL_SECONDS
            pause = await self.export_due(datetime.now(UTC))
            # A long pause leaves time to remove what is too old, and to count.
            while pause > PURGE_INTERVAL_SECONDS:
                await asyncio.sleep(PURGE_INTERVAL_SECONDS)
                pause -= PURGE_INTERVAL_SECONDS
                await self.purge(datetime.now(UTC))
            await asyncio.sleep(pause)

    async def purge(self, now: datetime) -> None:
        """Remove what is too old, and count what waits."""
        while removed := await self._store.trace_exports.purge(now):
            self._on_export(ExportResult.EXPIRED, removed)
            log.warning("traces not exported in time, they are given up", count=removed)
        await self._store.trace_exports.measure()

    async def export_due(self, now: datetime) -> float:
        """Make the exports that are due, and return the seconds until the next ones."""
        limit = 1 if self._failures else MAX_PARALLEL_EXPORTS
        due = await self._store.trace_exports.due(now, limit)
        attempts = await asyncio.gather(*(self._export(export, now) for export in due))
        failed = [attempt for attempt in attempts if attempt.result is ExportResult.RETRIED]
        pause = 0.0
        if failed:
            self._failures += 1
            asked = max((attempt.retry_after or 0.0 for attempt in failed), default=0.0)
            pause = pause_seconds(self._failures, asked, random.random())
            log.info("traces not exported, repeated later", error=failed[0].problem, pause=round(pause, 1))
        elif due:
            self._failures = 0
        for export, attempt in zip(due, attempts, strict=True):
            await self._record(export, attempt, now + timedelta(seconds=pause))
        return pause or (BUSY_SECONDS if len(due) == limit else POLL_SECONDS)

    async def _record(self, export: TraceExport, attempt: ExportAttempt, next_at: datetime) -> None:
        self._on_export(attempt.result, 1)
        if attempt.result is ExportResult.RETRIED:
            # Behind the others: one that never succeeds delays none of them.
            await self._store.trace_exports.delay(export, next_at)
            return
        if attempt.problem:
            log.warning("trace rejected", kind=export.kind, name=export.name, error=attempt.problem)
        await self._store.trace_exports.remove(export)

    async def _export(self, export: TraceExport, now: datetime) -> ExportAttempt:
        """Send the spans of one run or build; more than one request if there are many."""
        try:
            resource, spans = await self._spans(export)
            return await self._send(spans, resource, now)
        except StoreUnavailable as error:
            return ExportAttempt(ExportResult.RETRIED, str(error))
        except PostFailed as error:
            return ExportAttempt(ExportResult.RETRIED, str(error))
        except Exception:
            log.exception("trace not exported", kind=export.kind, name=export.name)
            return ExportAttempt(ExportResult.REJECTED, "internal error")

    async def _send(self, spans: Iterable[Span], resource: Attributes, now: datetime) -> ExportAttempt:
        # Here and not above: only an installation with a collector pays for it.
        from api.telemetry import otlp

        headers = {**self._settings.headers, "Content-Type": otlp.CONTENT_TYPE, "User-Agent": "crewyard"}
        problem = ""
        for body in otlp.requests(spans, resource):
            response = await self._poster.post(self._settings.url, body, headers, MAX_RESPONSE_BYTES)
            attempt = of_status(response.status, response.problem, response.retry_after, now)
            if attempt.result is not ExportResult.EXPORTED:
                return attempt
            lost, why = otlp.rejected(response.body)
            if lost:
                problem = f"the collector rejected {lost} spans: {why[:500]}"
        # Spans that were rejected alone are not sent again, as OTLP says.
        return ExportAttempt(ExportResult.REJECTED if problem else ExportResult.EXPORTED, problem)

    def _resource(self, row: RunDetail | DeploymentRow) -> Attributes:
        # Viewers that know OpenInference show the traces of each project by themselves.
        named = {"openinference.project.name": row.project}
        namespace = row.object_namespace or self._store.namespace
        return {"service.name": "crewyard", "k8s.namespace.name": namespace, **named}

    async def _spans(self, export: TraceExport) -> tuple[Attributes, Iterable[Span]]:
        """Return resource and spans of one.

        No spans if it was deleted meanwhile, or its caller does not record it.
        """
        if export.kind != RUN:
            deployment = await self._store.deployments.get(export.name)
            return ({}, []) if deployment is None else (self._resource(deployment), build_spans(deployment))
        row = await self._store.runs.get(export.name)
        parent = trace_context.parse(row.traceparent) if row else None
        if row is None or not row.ended or (parent and not parent.sampled):
            return {}, []
        reader, position = StepReader(self._settings.content), 0
        while row.started_at is not None:
            try:
                page = await self._store.events.read(export.name, position, EVENTS_PER_READ)
            except Missing:
                return {}, []
            for event in page.events:
                reader.add(event.type, event.id, event.data)
            if page.ended or not page.events:
                break
            position = page.events[-1].id
        return self._resource(row), run_spans(row, reader, self._settings.content, self._prices)
