"""Concurrency policies of schedules beside conflicts: a Run whose cached version is stale still counts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.run.reconcile import RunReconciler
from controller.schedule.reconcile import ScheduleReconciler
from crds import kinds
from crds.limits import PlanLimits, Plans
from crds.times import format_second
from kube import errors
from tests.unit.controller.memory_kube import ReconcilerTestbed

OLD_RUN: dict[str, Any] = {"project": "demo", "metadata": {"labels": {"crewyard.dev/schedule": "s"}}}


def show_due(testbed: ReconcilerTestbed, make: Any, policy: str) -> None:
    """Show a Project whose schedule is due, with an active Deployment."""
    schedule = {"name": "s", "cron": "* * * * *", "concurrencyPolicy": policy}
    entry = {"name": "s", "expression": "* * * * * UTC", "nextTime": "2026-01-01T00:00:00Z"}
    status = {"activeDeployment": "dep-a", "schedules": [entry]}
    testbed.show(kinds.PROJECT, make.project(schedules=[schedule], status=status))
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))


@pytest.fixture
def testbed() -> ReconcilerTestbed:
    return ReconcilerTestbed()


async def test_replace_cancels_a_run_that_changed_before_the_cancellation(testbed, make, config):
    show_due(testbed, make, "Replace")
    reconciler = ScheduleReconciler(testbed.applier, config, lambda: True)
    testbed.show(kinds.RUN, make.run("run-old", **OLD_RUN))
    # The API server writes its claim; the event is on its way.
    testbed.kube.put(kinds.RUN, make.run("run-old", **OLD_RUN))
    with pytest.raises(errors.KubeConflict):
        await reconciler.reconcile("demo")
    await reconciler.reconcile("demo")
    assert testbed.kube.objects["runs", "run-old"]["spec"]["cancel"] is True
    assert len(testbed.kube.created) == 1


async def test_forbid_counts_a_run_whose_own_reconcile_conflicted(testbed, make, config):
    show_due(testbed, make, "Forbid")
    reconciler = ScheduleReconciler(testbed.applier, config, lambda: True)
    claim = {"podUid": "uid-run-old", "time": format_second(datetime.now(UTC) - timedelta(seconds=5))}
    testbed.show(kinds.RUN, make.run("run-old", status={"claim": claim}, **OLD_RUN))
    testbed.show(kinds.POD, make.pod("run-old", "uid-run-old"))
    # The API server writes a question; the event is on its way.
    testbed.kube.put(kinds.RUN, make.run("run-old", status={"claim": claim}, **OLD_RUN))
    with pytest.raises(errors.KubeConflict):
        await RunReconciler(testbed.applier, config).reconcile("run-old")
    await reconciler.reconcile("demo")
    assert testbed.kube.created == []


@pytest.mark.parametrize(("queue", "started"), [(1, 0), (2, 1)])
async def test_the_queue_of_the_plan_bounds_the_runs_of_schedules(testbed, make, config, queue, started):
    plans = Plans({"free": PlanLimits(60, 2, limits={"queue": queue})})
    show_due(testbed, make, "Allow")
    testbed.show(kinds.RUN, make.run("run-old", project="demo"))
    await ScheduleReconciler(testbed.applier, replace(config, plans=plans), lambda: True).reconcile("demo")
    assert len(testbed.kube.created) == started


async def test_a_run_that_ended_before_its_cancellation_is_reconciled(testbed, make, config):
    show_due(testbed, make, "Replace")
    reconciler = ScheduleReconciler(testbed.applier, config, lambda: True)
    testbed.show(kinds.RUN, make.run("run-old", **OLD_RUN))
    testbed.kube.put(kinds.RUN, make.run("run-old", status={"phase": "Succeeded"}, **OLD_RUN))
    with pytest.raises(errors.KubeConflict):
        await reconciler.reconcile("demo")
    await testbed.queued()
    await reconciler.reconcile("demo")
    # It is read here before its event arrives, which then enqueues nothing.
    assert "runs/run-old" in await testbed.queued()
