"""Controller metrics, named as in controller-runtime so its dashboards fit. Called by the reconcilers."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from crds import kinds
from crds.reasons import BuildReason, RunReason
from internal_tls.metrics import TlsMetrics

_BUILD_BUCKETS = (1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560)
_RUN_BUCKETS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 86400)


@dataclass(frozen=True)
class Sample:
    """Sample of a gauge, with its label values in the order of the label names."""

    labels: tuple[str, ...]
    value: float


class Gauges(Collector):
    """Gauges read at scrape time, so they cannot drift."""

    def __init__(self) -> None:
        self._sources: list[tuple[str, str, tuple[str, ...], Callable[[], Iterable[Sample]]]] = []

    def add(
        self, name: str, text: str, labels: tuple[str, ...], read: Callable[[], Iterable[Sample]]
    ) -> None:
        """Add a gauge; `read` returns its samples."""
        self._sources.append((name, text, labels, read))

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield metric families; called by the registry at each scrape."""
        for name, text, labels, read in self._sources:
            family = GaugeMetricFamily(name, text, labels=labels)
            for reading in read():
                family.add_metric(reading.labels, reading.value)
            yield family


def _tasks() -> Sample:
    try:
        return Sample((), len(asyncio.all_tasks()))
    except RuntimeError:  # no running loop: not a scrape
        return Sample((), 0)


class ControllerMetrics:
    """Metrics on a registry of their own (several controllers fit in one process)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.gauges = Gauges()
        self.registry.register(self.gauges)
        ProcessCollector(registry=self.registry)
        self.gauges.add("crewyard_tasks", "Tasks of the event loop.", (), lambda: [_tasks()])
        self.reconciles = Counter(
            "crewyard_reconcile_total", "Reconciles.", ("kind", "result"), registry=self.registry
        )
        self.errors = Counter(
            "crewyard_reconcile_errors_total", "Reconciles that failed.", ("kind",), registry=self.registry
        )
        self.seconds = Histogram(
            "crewyard_reconcile_duration_seconds",
            "Time of one reconcile.",
            ("kind",),
            registry=self.registry,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
        )
        self.writes = Counter(
            "crewyard_api_writes_total", "Writes to the apiserver.", ("kind", "verb"), registry=self.registry
        )
        self.invalid_statuses = Counter(
            "crewyard_status_refused_total",
            "Statuses that the apiserver rejected as invalid, by handling (reduced, retried).",
            ("kind", "result"),
            registry=self.registry,
        )
        self.events_dropped = Counter(
            "crewyard_events_dropped_total", "Kubernetes Events dropped.", registry=self.registry
        )
        self.polls = Counter(
            "crewyard_git_poll_total", "Polls of git repositories.", ("result",), registry=self.registry
        )
        self.github = Counter(
            "crewyard_github_failures_total",
            "Failed reports of Deployments to GitHub.",
            ("result",),
            registry=self.registry,
        )
        self.commit_statuses = Counter(
            "crewyard_commit_status_failures_total",
            "Failed reports of commit statuses to GitLab, Gitea and Forgejo.",
            ("result",),
            registry=self.registry,
        )
        self.builds = Histogram(
            "crewyard_build_duration_seconds",
            "From a Deployment's creation to its image or failure.",
            ("result",),
            registry=self.registry,
            buckets=_BUILD_BUCKETS,
        )
        self.runs = Histogram(
            "crewyard_run_duration_seconds",
            "Run time of crews.",
            ("result",),
            registry=self.registry,
            buckets=_RUN_BUCKETS,
        )
        self.build_ends = Counter(
            "crewyard_build_ends_total",
            "Deployments that were built, reused an image, or failed with a reason.",
            ("result", "reason"),
            registry=self.registry,
        )
        self.run_ends = Counter(
            "crewyard_run_ends_total",
            "Runs that ended, by phase; failed ones with their reason.",
            ("result", "reason"),
            registry=self.registry,
        )
        self.schedule_ticks = Counter(
            "crewyard_schedule_ticks_total",
            "Due times of schedules, by what became of them.",
            ("result",),
            registry=self.registry,
        )
        self.schedule_delay = Histogram(
            "crewyard_schedule_delay_seconds",
            "From the time of a schedule to its Run.",
            registry=self.registry,
            buckets=(0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000),
        )
        self.warm_binds = Counter(
            "crewyard_warm_binds_total",
            "Waiting pods given to a Run (bound), or found changed or gone at that moment (lost).",
            ("result",),
            registry=self.registry,
        )
        self.warm_builder_binds = Counter(
            "crewyard_warm_builder_binds_total",
            "Waiting pods given to a build (bound), or found changed or gone at that moment (lost).",
            ("result",),
            registry=self.registry,
        )
        self.tls = TlsMetrics(self.registry)
        self._init_labels()
        self.queued = Histogram(
            "crewyard_run_queue_seconds",
            "From a Run's creation to its pod (whole seconds).",
            registry=self.registry,
            buckets=(1, 3, 10, 30, 100, 300, 1000, 3000, 10000),
        )

    def _init_labels(self) -> None:
        """Initialise rare counters with 0: the first sample of a new series is not an increase."""
        for result in ("built", "reused"):
            self.build_ends.labels(result, "")
        for build_reason in BuildReason:
            self.build_ends.labels("failed", build_reason)
        for result in ("succeeded", "canceled"):
            self.run_ends.labels(result, "")
        for run_reason in RunReason:
            self.run_ends.labels("failed", run_reason)
        for kind in kinds.OWN_KINDS:
            self.errors.labels(kind.plural)
            for result in ("reduced", "retried"):
                self.invalid_statuses.labels(kind.plural, result)
        for result in ("passing", "refused"):
            self.github.labels(result)
            self.commit_statuses.labels(result)
        self.github.labels("unknown_commit")
        for result in ("bound", "lost"):
            self.warm_binds.labels(result)
            self.warm_builder_binds.labels(result)
        for result in ("started", "missed", "queue_full", "refused"):
            self.schedule_ticks.labels(result)
