"""What the facade counts, for Prometheus. Called by `api.gate` and by the streams; served at /metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

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

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
