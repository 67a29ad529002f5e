"""Prometheus metrics of the API server. Called by `api.routing.middleware` and `api.streaming`."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from api import tenant_limits
from api.store.index.audit.audit_log import ACCEPTED, FAILED, PRUNED
from api.store.index.storage_stats import BYTES, ROWS, StorageMeter
from api.telemetry.attempt import ExportResult
from crds import kinds

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
            "Time from the arrival of a request to its response; without event streams.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        Gauge(
            "crewyard_tasks", "Tasks of the event loop at scrape time.", registry=self.registry
        ).set_function(_tasks)
        self.streams = Gauge("crewyard_sse_clients", "Open event streams.", registry=self.registry)
        self.claims_given_up = Gauge(
            "crewyard_claims_given_up",
            "Claims and results that were permanently rejected for their Runs, since the start.",
            registry=self.registry,
        )

        self.claims = Counter(
            "crewyard_claims_total",
            "Responses to claims of pods, by state; a waiting pod claims again.",
            ("state",),
            registry=self.registry,
        )
        for state in ("granted", "wait", "refused"):
            # Create the series now: a series that appears with 1 shows no increase.
            self.claims.labels(state)
        self.questions = Counter(
            "crewyard_questions_total",
            "Questions of runs to a person, by what became of them.",
            ("state",),
            registry=self.registry,
        )
        for state in ("asked", "answered", "unanswered"):
            self.questions.labels(state)
        self.notification_attempts = Counter(
            "crewyard_notification_attempts_total",
            "Attempts to deliver notifications, by the status of the delivery after them.",
            ("status",),
            registry=self.registry,
        )
        for state in ("delivered", "pending", "failed"):
            self.notification_attempts.labels(state)
        self.notifications_pending = Gauge(
            "crewyard_notifications_pending",
            "Deliveries of notifications that are pending, as last counted by the leader.",
            registry=self.registry,
        )
        self.notifications_failing = Gauge(
            "crewyard_notifications_failing",
            "Receivers of notifications whose last delivery was given up, as last counted by the leader.",
            registry=self.registry,
        )
        self.trace_exports = Counter(
            "crewyard_trace_exports_total",
            "Attempts to export the trace of a run or build; expired: given up.",
            ("result",),
            registry=self.registry,
        )
        for result in ExportResult:
            self.trace_exports.labels(result)
        self.traces_waiting = Gauge(
            "crewyard_traces_waiting",
            "Ended runs and builds whose trace is not exported yet, as last counted by the leader.",
            registry=self.registry,
        )
        self._limits_reached = Counter(
            "crewyard_limit_reached_total",
            "Requests refused, and run logs closed, since a project had reached a limit.",
            ("limit",),
            registry=self.registry,
        )
        for limit in tenant_limits.COUNTED:
            self._limits_reached.labels(limit)
        self.audit_records = Counter(
            "crewyard_audit_records_total",
            "Records added to the audit log, by outcome: accepted, failed, pruned.",
            ("outcome",),
            registry=self.registry,
        )
        for outcome in (ACCEPTED, FAILED, PRUNED):
            self.audit_records.labels(outcome)
        self.background_failures = Counter(
            "crewyard_background_failures_total",
            "Failures of background loops; each loop is restarted.",
            ("work",),
            registry=self.registry,
        )
        self.leader = Gauge(
            "crewyard_leader",
            "1 if this replica is the leader: it watches the cluster, prunes and accounts.",
            registry=self.registry,
        )
        self.projection_age = Gauge(
            "crewyard_projection_age_seconds",
            "Seconds since the leader last received a list, an event or a bookmark of a kind.",
            ("kind",),
            registry=self.registry,
        )
        self.data_size = Gauge(
            "crewyard_data_size_bytes",
            "Size of the volume with index, logs and blobs; 0 if none is used.",
            registry=self.registry,
        )
        self.data_free = Gauge(
            "crewyard_data_free_bytes",
            "Free bytes of that volume; 0 if none is used.",
            registry=self.registry,
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
        self.oldest_unsealed = Gauge(
            "crewyard_oldest_unsealed_seconds",
            "Seconds since the end of the oldest finished run whose events are not sealed.",
            registry=self.registry,
        )

    def limit_reached(self, limit: str, project: str) -> None:
        """Record that a project reached a limit."""
        tenant_limits.record(lambda name: self._limits_reached.labels(name).inc(), limit, project)

    def watch_storage(self, measure: StorageMeter) -> None:
        """Report the storage gauges from the last measurement."""
        for kind in ROWS:
            self.records.labels(kind).set_function(partial(_row, measure, kind))
        for kind in BYTES:
            self.blob_bytes.labels(kind).set_function(partial(_byte, measure, kind))
        self.oldest_unsealed.set_function(lambda: measure.last.oldest_unsealed)

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


def _row(measure: StorageMeter, kind: str) -> float:
    return measure.last.rows[kind]


def _byte(measure: StorageMeter, kind: str) -> float:
    return measure.last.bytes[kind]
