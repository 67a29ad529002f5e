"""Metrics of a TLS port for pods. Called by the metrics of API server and controller."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class TlsMetrics:
    """What a TLS port serves, on the registry of its process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.handshakes = Counter(
            "crewyard_tls_handshakes_total",
            "TLS handshakes of pods; failed: most often the pod does not accept the certificate.",
            ("result",),
            registry=registry,
        )
        # A series that appears with 1 shows no increase.
        for result in ("done", "failed"):
            self.handshakes.labels(result)
        self.expiry = Gauge(
            "crewyard_tls_certificate_expiry_timestamp_seconds",
            "When the certificate of the TLS port for pods expires; 0 without such a port.",
            registry=registry,
        )
        self.rejected = Gauge(
            "crewyard_tls_certificate_rejected",
            "1 if the files of that certificate are invalid: the one before is still served.",
            registry=registry,
        )
