"""What the facade counts, for Prometheus. Called by `api.gate` and by the streams; served at /metrics."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from api.store.index.holdings import BYTES, ROWS, Measure

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
        self.streams = Gauge("crewyard_sse_clients", "Event streams that are open.", registry=self.registry)
        self.claims_given_up = Gauge(
            "crewyard_claims_given_up",
            "Claims and results that their Runs refused for good, since the start.",
            registry=self.registry,
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

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)


def _row(measure: Measure, kind: str) -> float:
    return measure.last.rows[kind]


def _byte(measure: Measure, kind: str) -> float:
    return measure.last.bytes[kind]
