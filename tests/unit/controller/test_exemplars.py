"""Run times with the trace of a run as exemplar, for a Prometheus that asks for OpenMetrics."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from controller.observability.health import HealthReadings, application
from controller.observability.metrics import ControllerMetrics
from controller.run.end_metrics import exemplar_of
from crds.objects import Run
from crds.runs import trace_context

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CALM = HealthReadings(resync_age=3.0, resync_problem="", oldest_ready=0.0, missing_watchers=(), uptime=100.0)


def run(**annotations: str) -> Run:
    return Run({"metadata": {"name": "run-a", "uid": "uid-1", "annotations": annotations}, "spec": {}})


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, trace_context.trace_id(None, "uid-1")),
        ({"crewyard.dev/traceparent": PARENT}, PARENT[3:35]),
        ({"crewyard.dev/traceparent": "wrong"}, trace_context.trace_id(None, "uid-1")),
    ],
)
def test_the_exemplar_is_the_trace_that_is_exported(annotations, expected):
    assert exemplar_of(run(**annotations)) == {"trace_id": expected}


async def test_exemplars_are_in_the_format_that_has_them():
    metrics = ControllerMetrics()
    metrics.runs.labels("succeeded").observe(2.5, exemplar_of(run()))
    async with TestClient(TestServer(application(lambda: CALM, metrics.registry))) as client:
        texts = {}
        for accept in (OPENMETRICS, "*/*"):
            response = await client.get("/metrics", headers={"Accept": accept})
            texts[accept] = (response.content_type, await response.text())
    line = 'crewyard_run_duration_seconds_bucket{le="3.0",result="succeeded"} 1.0'
    trace = exemplar_of(run())["trace_id"]
    assert texts[OPENMETRICS][0] == "application/openmetrics-text"
    assert f'{line} # {{trace_id="{trace}"}} 2.5' in texts[OPENMETRICS][1]
    assert texts[OPENMETRICS][1].endswith("# EOF\n")
    assert texts["*/*"][0] == "text/plain"
    assert f"{line}\n" in texts["*/*"][1] and "trace_id" not in texts["*/*"][1]
