"""What the facade counts, for Prometheus. Called by `api.routing.middleware` and by the streams; served at /metrics."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from api.store.index.storage_stats import BYTES, ROWS, Measure
from crds import kinds

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """One registry for one application; labels hold route templates, never paths, ids or names."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "crewyard_http_requests_total",
            "Requests answered.",
            ("route", "method", "code"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "crewyard_http_request_duration_seconds",
            "Time from a request's arrival to its answer; event streams are not in it.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        Gauge(
            "crewyard_tasks", "Tasks of the process's event loop, at this scrape.", registry=self.registry
        ).set_function(_tasks)
        self.streams = Gauge("crewyard_sse_clients", "Event streams that are open.", registry=self.registry)
        self.claims_given_up = Gauge(
            "crewyard_claims_given_up",
            "Claims and results that their Runs refused for good, since the start.",
            registry=self.registry,
        )

        self.claims = Counter(
            "crewyard_claims_total",
            "Claims of pods that were answered, by the answer; a pod that waits asks again.",
            ("state",),
            registry=self.registry,
        )
        for state in ("granted", "wait", "refused"):
            # The first of a new series would be no increase.
            self.claims.labels(state)
        self.background_failures = Counter(
            "crewyard_background_failures_total",
            "Times that work nobody asked for failed and was begun again.",
            ("work",),
            registry=self.registry,
        )
        self.leader = Gauge(
            "crewyard_leader",
            "Whether this replica follows the cluster, prunes and accounts.",
            registry=self.registry,
        )
        self.projection_age = Gauge(
            "crewyard_projection_age_seconds",
            "How long ago the leading replica last heard of a kind: a list, a change or a sign of life.",
            ("kind",),
            registry=self.registry,
        )
        self.data_size = Gauge(
            "crewyard_data_size_bytes",
            "Size of the volume that holds index, logs and blobs; 0 where none is used.",
            registry=self.registry,
        )
        self.data_free = Gauge(
            "crewyard_data_free_bytes", "What is free of it; 0 where none is used.", registry=self.registry
        )

        self.records = Gauge(
            "crewyard_records",
            "Rows that are kept, as the leading replica last counted them.",
            ("kind",),
            registry=self.registry,
        )
        self.blob_bytes = Gauge(
            "crewyard_blob_bytes",
            "Bytes of blobs, as the leading replica last counted them.",
            ("kind",),
            registry=self.registry,
        )
        self.oldest_unsealed = Gauge(
            "crewyard_oldest_unsealed_seconds",
            "How long ago the first run ended whose events are not sealed yet.",
            registry=self.registry,
        )

    def show(self, measure: Measure) -> None:
        """From now on the figures of what is kept are those that were measured last."""
        for kind in ROWS:
            self.records.labels(kind).set_function(partial(_row, measure, kind))
        for kind in BYTES:
            self.blob_bytes.labels(kind).set_function(partial(_byte, measure, kind))
        self.oldest_unsealed.set_function(lambda: measure.last.oldest_unsealed)

    def follow(self, silence: Callable[[str, float], float], leads: Callable[[], bool]) -> None:
        """From now on it is said who leads, and for how long each kind was silent (by `silence`)."""
        self.leader.set_function(lambda: float(leads()))
        for kind in kinds.OWN:
            self.projection_age.labels(kind.plural).set_function(partial(_silence, silence, kind.plural))

    def watch_volume(self, directory: Path | None) -> None:
        """From now on the figures of the volume are those of the one that `directory` is on."""
        if directory is not None:
            self.data_size.set_function(lambda: float(_volume(directory)[0]))
            self.data_free.set_function(lambda: float(_volume(directory)[1]))

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)


def _tasks() -> float:
    try:
        return float(len(asyncio.all_tasks()))
    except RuntimeError:  # no loop runs: this is no scrape
        return 0.0


def _volume(directory: Path) -> tuple[int, int]:
    """Size of a volume and what its users may still write, in bytes; nothing where it cannot be asked."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0, 0
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def _silence(silence: Callable[[str, float], float], kind: str) -> float:
    return silence(kind, time.monotonic())


def _row(measure: Measure, kind: str) -> float:
    return measure.last.rows[kind]


def _byte(measure: Measure, kind: str) -> float:
    return measure.last.bytes[kind]
