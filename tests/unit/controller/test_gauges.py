"""What the controller shows at each scrape, read from what it remembers."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from controller.gauges import add_gauges
from controller.observability.health import HealthReadings
from controller.observability.metrics import Gauges
from controller.runtime import event_map
from controller.runtime.cache import ObjectCache
from controller.runtime.queues import Queues
from controller.runtime.workqueue import ReconcileKey
from crds import kinds
from crds.times import format_second

CALM = HealthReadings(resync_age=3.0, resync_problem="", oldest_ready=0.0, missing_watchers=(), uptime=100.0)


@pytest.fixture
def known():
    return ObjectCache()


@pytest.fixture
def clock():
    return [1000.0]


def shown(known, clock, readings=CALM, lanes=None):
    gauges, registry = Gauges(), CollectorRegistry()
    registry.register(gauges)
    add_gauges(gauges, [known], [lanes or Queues(lambda: clock[0])], lambda: readings)
    return registry.get_sample_value


def remember(known, kind, name, phase, seconds):
    made = format_second(datetime.now(UTC) - timedelta(seconds=seconds))
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": made}
    known.put(kind, {"metadata": metadata, "spec": {}, "status": {"phase": phase} if phase else {}})


def test_unfinished_objects_are_counted_by_phase_with_age(known, clock):
    remember(known, kinds.RUN, "run-a", "Running", 50)
    remember(known, kinds.RUN, "run-b", "Pending", 7000)
    remember(known, kinds.RUN, "run-c", None, 20)
    remember(known, kinds.RUN, "run-d", "Succeeded", 90000)
    remember(known, kinds.DEPLOYMENT, "dep-a", "Active", 90000)
    value = shown(known, clock)
    count, oldest = "crewyard_unfinished", "crewyard_unfinished_oldest_seconds"
    pending, running = {"kind": "runs", "phase": "pending"}, {"kind": "runs", "phase": "running"}
    building = {"kind": "deployments", "phase": "building"}
    assert (value(count, pending), value(count, running), value(count, building)) == (2, 1, 0)
    assert 7000 <= value(oldest, pending) < 8000 and 50 <= value(oldest, running) < 1000
    assert value(oldest, building) == 0
    assert value(count, {"kind": "runs", "phase": "succeeded"}) is None


def test_queue_time_does_not_count_as_age(known, clock):
    started = format_second(datetime.now(UTC) - timedelta(seconds=60))
    made = format_second(datetime.now(UTC) - timedelta(days=2))
    metadata = {"name": "run-a", "uid": "a", "resourceVersion": "1", "creationTimestamp": made}
    status = {"phase": "Running", "startTime": started}
    known.put(kinds.RUN, {"metadata": metadata, "spec": {}, "status": status})
    oldest = shown(known, clock)("crewyard_unfinished_oldest_seconds", {"kind": "runs", "phase": "running"})
    assert 60 <= oldest < 3600


@pytest.mark.parametrize(("questions", "hours"), [(None, 30), ([], 6)])
def test_time_for_answers_does_not_count_as_age(known, clock, questions, hours):
    began = format_second(datetime.now(UTC) - timedelta(hours=30))
    metadata = {"name": "run-a", "uid": "a", "resourceVersion": "1", "creationTimestamp": began}
    asked = {} if questions is None else {"inputRequests": questions}
    status = {"phase": "Running", "startTime": began, **asked}
    known.put(kinds.RUN, {"metadata": metadata, "spec": {}, "status": status})
    annotations = {"crewyard.dev/ask-seconds": str(24 * 3600)}
    known.put(kinds.POD, {"metadata": {**metadata, "uid": "p", "annotations": annotations}, "status": {}})
    oldest = shown(known, clock)("crewyard_unfinished_oldest_seconds", {"kind": "runs", "phase": "running"})
    assert hours * 3600 <= oldest < (hours + 1) * 3600


def test_sources_are_counted_by_the_last_poll_result(known, clock):
    states = {
        "resolved": ["SourceResolved"],
        "unreachable": ["Reconciling"],
        "unreachable too": ["Reconciling"],
        "refused": ["Stalled"],
        "new": [],
    }
    for name, true in states.items():
        found = [{"type": one, "status": "True"} for one in true] + [{"type": "Ready", "status": "False"}]
        project(known, name, {"url": "https://git.example.com/a.git"}, found)
    # These are not polled.
    project(known, "uploads", None, [{"type": "Ready", "status": "True"}])
    project(known, "suspended", {"url": "x", "suspend": True}, [{"type": "Ready", "status": "True"}])
    value = shown(known, clock)
    counted = {state: value("crewyard_sources", {"state": state}) for state in ("resolved", "unreachable")}
    assert counted == {"resolved": 1, "unreachable": 2}
    assert (value("crewyard_sources", {"state": "refused"}), value("crewyard_sources", {"state": "new"})) == (
        1,
        1,
    )


def test_limited_projects_are_counted_by_reason(known, clock):
    reasons = {"large": "AboveCeiling", "huge": "AboveCeiling", "open": "EgressRefused", "odd": "Unknown"}
    for name, reason in reasons.items():
        project(known, name, None, [{"type": "Limited", "status": "True", "reason": reason}])
    # A problem of another kind, and none.
    project(known, "refused", None, [{"type": "Ready", "status": "False", "reason": "AboveCeiling"}])
    project(known, "calm", None, [])
    value = shown(known, clock)
    counted = {
        reason: value("crewyard_limited_projects", {"reason": reason}) for reason in set(reasons.values())
    }
    assert counted == {"AboveCeiling": 2, "EgressRefused": 1, "Unknown": None}


def test_reasons_without_a_limited_project_show_zero(known, clock):
    value = shown(known, clock)
    for reason in ("AboveCeiling", "EgressRefused"):
        assert value("crewyard_limited_projects", {"reason": reason}) == 0


def project(known, name, git, found):
    spec = {"source": {"git": git}} if git else {}
    metadata = {"name": name, "uid": name, "resourceVersion": "1"}
    known.put(kinds.PROJECT, {"metadata": metadata, "spec": spec, "status": {"conditions": found}})


def test_age_of_an_unprocessed_key_grows(known, clock):
    lanes = Queues(lambda: clock[0])
    lanes.add(ReconcileKey(kinds.RUN.plural, "run-a"))
    lanes.add(event_map.attestation("dep-a"))
    clock[0] += 90
    value = shown(known, clock, lanes=lanes)
    assert value("crewyard_queue_depth", {"queue": "main"}) == 1
    assert value("crewyard_queue_oldest_seconds", {"queue": "main"}) == 90
    assert value("crewyard_queue_oldest_seconds", {"queue": "attestations"}) == 90
    assert value("crewyard_queue_oldest_seconds", {"queue": "sources"}) == 0


@pytest.mark.parametrize(("age", "seen"), [(3.0, 3.0), (None, 100.0)])
def test_list_age_counts_from_the_process_start(known, clock, age, seen):
    readings = HealthReadings(age, "", 0.0, (), 100.0)
    assert shown(known, clock, readings)("crewyard_resync_age_seconds") == seen


def test_standby_reports_no_watches(known, clock):
    value = shown(known, clock, HealthReadings(None, "", 0.0, ("runs",), 0.0, active=False))
    assert value("crewyard_controller_active") == 0
    assert value("crewyard_watches", {"kind": "pods"}) is None


def test_ended_watch_is_visible(known, clock):
    value = shown(known, clock, HealthReadings(3.0, "", 0.0, ("runs",), 100.0))
    assert value("crewyard_watches", {"kind": "runs"}) == 0
    assert value("crewyard_watches", {"kind": "pods"}) == 1
