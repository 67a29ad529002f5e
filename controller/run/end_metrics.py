"""Metrics of ended Runs. Called by both reconcilers that end Runs, after the write of the final status."""

from controller.observability.metrics import ControllerMetrics
from controller.runtime.decision import Decision
from crds import names
from crds.objects import Run
from crds.runs import trace_context


def record_end(metrics: ControllerMetrics, run: Run, decision: Decision, traces: bool) -> None:
    """Count a Run by the result and reason of its final status. `traces`: with its trace as exemplar."""
    status = decision.status or {}
    seconds = int(status.get("durationMs") or 0) / 1000
    result = str(status["phase"]).lower()
    metrics.runs.labels(result).observe(seconds, exemplar_of(run) if traces else None)
    # The reason is always one of `RunReason`: see `controller.run.outcome`.
    metrics.run_ends.labels(result, (status.get("error") or {}).get("reason", "")).inc()


def exemplar_of(run: Run) -> dict[str, str]:
    """Return the trace of a run, as the API server exports it."""
    return {"trace_id": trace_context.trace_id(run.annotations.get(names.ANNOTATION_TRACEPARENT), run.uid)}
