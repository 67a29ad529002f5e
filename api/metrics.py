"""Prometheus metrics of the API server. Called by `api.routing.middleware` and `api.streaming`."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from api import tenant_limits
from api.store.index.audit.audit_log import ACCEPTED, FAILED, PRUNED
from api.store.index.storage_stats import BYTES, ROWS, StorageStats
from api.telemetry.attempt import ExportResult
from crds import kinds
from internal_tls.metrics import TlsMetrics

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ApiMetrics:
    """Metrics of one application; labels hold route templates, never paths, ids or names."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "crewyard_http_requests_total",
            "Responses sent.",
            ("route", "method", "code"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "crewyard_http_request_duration_seconds",
            "Time from the arrival of a request to its response; without event streams and waits.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        Gauge(
            "crewyard_tasks", "Tasks of the event loop at scrape time.", registry=self.registry
        ).set_function(_tasks)
        self.streams = self._gauge("crewyard_sse_clients", "Open event streams.")
        self.claims_given_up = self._gauge(
            "crewyard_claims_given_up",
            "Claims and results that were permanently rejected for their Runs, since the start.",
        )

        self.claims = self._counter(
            "crewyard_claims_total",
            "Responses to claims of pods, by state; a waiting pod claims again.",
            "state",
            ("granted", "wait", "refused"),
        )
        self.questions = self._counter(
            "crewyard_questions_total",
            "Questions of runs to a person, by what became of them.",
            "state",
            ("asked", "answered", "unanswered"),
        )
        self.notification_attempts = self._counter(
            "crewyard_notification_attempts_total",
            "Attempts to deliver notifications, by the status of the delivery after them.",
            "status",
            ("delivered", "pending", "failed"),
        )
        self.notifications_pending = self._gauge(
            "crewyard_notifications_pending",
            "Deliveries of notifications that are pending, as last counted by the leader.",
        )
        self.notifications_failing = self._gauge(
            "crewyard_notifications_failing",
            "Receivers of notifications whose last delivery was given up, as last counted by the leader.",
        )
        self.trace_exports = self._counter(
            "crewyard_trace_exports_total",
            "Attempts to export the trace of a run or build; expired: given up.",
            "result",
            ExportResult,
        )
        self.traces_waiting = self._gauge(
            "crewyard_traces_waiting",
            "Ended runs and builds whose trace is not exported yet, as last counted by the leader.",
        )
        self._limits_reached = self._counter(
            "crewyard_limit_reached_total",
            "Requests refused, and run logs closed, since a project had reached a limit.",
            "limit",
            tenant_limits.COUNTED,
        )
        self.audit_records = self._counter(
            "crewyard_audit_records_total",
            "Records added to the audit log, by outcome: accepted, failed, pruned.",
            "outcome",
            (ACCEPTED, FAILED, PRUNED),
        )
        self.tls = TlsMetrics(self.registry)
        self.background_failures = Counter(
            "crewyard_background_failures_total",
            "Failures of background loops; each loop is restarted.",
            ("work",),
            registry=self.registry,
        )
        self.leader = self._gauge(
            "crewyard_leader", "1 if this replica is the leader: it watches the cluster, prunes and accounts."
        )
        self.projection_age = Gauge(
            "crewyard_projection_age_seconds",
            "Seconds since the leader last received a list, an event or a bookmark of a kind.",
            ("kind",),
            registry=self.registry,
        )
        self.data_size = self._gauge(
            "crewyard_data_size_bytes", "Size of the volume with index, logs and blobs; 0 if none is used."
        )
        self.data_free = self._gauge(
            "crewyard_data_free_bytes", "Free bytes of that volume; 0 if none is used."
        )

        self.records = Gauge(
            "crewyard_records",
            "Stored rows, as last counted by the leader.",
            ("kind",),
            registry=self.registry,
        )
        self.blob_bytes = Gauge(
            "crewyard_blob_bytes",
            "Bytes of blobs, as last counted by the leader.",
            ("kind",),
            registry=self.registry,
        )
        self.oldest_unsealed = self._gauge(
            "crewyard_oldest_unsealed_seconds",
            "Seconds since the end of the oldest finished run whose events are not sealed.",
        )

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def _counter(self, name: str, text: str, label: str, values: Iterable[str]) -> Counter:
        """Return a counter with the series of these values: one that appears with 1 shows no increase."""
        counter = Counter(name, text, (label,), registry=self.registry)
        for value in values:
            counter.labels(value)
        return counter

    def limit_reached(self, limit: str, project: str) -> None:
        """Record that a project reached a limit."""
        tenant_limits.record(lambda name: self._limits_reached.labels(name).inc(), limit, project)

    def watch_storage(self, last: Callable[[], StorageStats]) -> None:
        """Report the storage gauges from the last measurement."""
        for kind in ROWS:
            self.records.labels(kind).set_function(partial(_row, last, kind))
        for kind in BYTES:
            self.blob_bytes.labels(kind).set_function(partial(_byte, last, kind))
        self.oldest_unsealed.set_function(lambda: last().oldest_unsealed)

    def watch_projection(self, age: Callable[[str, float], float], is_leader: Callable[[], bool]) -> None:
        """Report leadership, and the age of each projection by `age(kind, now)` in seconds."""
        self.leader.set_function(lambda: float(is_leader()))
        for kind in kinds.OWN_KINDS:
            self.projection_age.labels(kind.plural).set_function(partial(_age_now, age, kind.plural))

    def watch_volume(self, directory: Path | None) -> None:
        """Report size and free bytes of the volume that holds `directory`."""
        if directory is not None:
            self.data_size.set_function(lambda: float(_volume(directory)[0]))
            self.data_free.set_function(lambda: float(_volume(directory)[1]))

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)


def _tasks() -> float:
    try:
        return float(len(asyncio.all_tasks()))
    except RuntimeError:  # no running loop: this is not a scrape
        return 0.0


def _volume(directory: Path) -> tuple[int, int]:
    """Return size and free bytes for users of a volume; zeros if statvfs fails."""
    try:
        stats = os.statvfs(directory)
    except OSError:
        return 0, 0
    return stats.f_frsize * stats.f_blocks, stats.f_frsize * stats.f_bavail


def _age_now(age: Callable[[str, float], float], kind: str) -> float:
    return age(kind, time.monotonic())


def _row(last: Callable[[], StorageStats], kind: str) -> float:
    return last().rows[kind]


def _byte(last: Callable[[], StorageStats], kind: str) -> float:
    return last().bytes[kind]
