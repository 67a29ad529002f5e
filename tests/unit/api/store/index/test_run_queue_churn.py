"""Property test of queue positions against a model, over random sequences of steps."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.store.index.claims.claims import ClaimDenied, ClaimGranted, ClaimRequest, ClaimWait
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders

PLANS = Plans({"free": PlanLimits(60, 0), "pro": PlanLimits(300, 1), "team": PlanLimits(600, 2)})
DONE = {"outcome": "succeeded", "durationMs": 1}
WAITING_FOR_BUILD = {
    "type": "Succeeded",
    "status": "Unknown",
    "reason": "WaitingForDeployment",
    "message": "m",
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["accept"] * 3
            + ["claim"] * 5
            + ["report", "end", "cancel", "delete", "build", "built", "pro", "team", "free"]
        ),
        st.integers(0, 1),
        st.integers(0, 4),
    ),
    min_size=30,
    max_size=45,
)
SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
_numbers = itertools.count()


@dataclass
class QueueModel:
    """Model of a project's queue: its runs in order of arrival, and those that hold a slot."""

    name: str
    plan: str = "pro"
    waiting: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    canceled: set[str] = field(default_factory=set)
    over: set[str] = field(default_factory=set)
    aside: set[str] = field(default_factory=set)
    runs: list[str] = field(default_factory=list)

    @property
    def free(self) -> int:
        return max(0, PLANS.of(self.plan).concurrent_runs - len(self.held))

    def position(self, run: str) -> int | None:
        line = [one for one in self.waiting if one not in self.aside][self.free :]
        return line.index(run) + 1 if run in line else None


async def step(store: Store, project: QueueModel, what: str, run: str | None) -> None:
    spec = {"project": project.name, "deployment": "dep-a"}
    if what in ("free", "pro", "team"):
        project.plan = what
        await store.projects.observe(builders.project(project.name, f"uid-{project.name}", plan=what))
    elif what == "accept":
        made = await builders.create_run(store, project=project.name)
        await store.run_writer.observe(builders.run(made, spec=spec, project=project.name), builders.NOW)
        project.runs.append(made)
        project.waiting.append(made)
    elif run is None or run in project.over:
        return
    elif what == "claim":
        await claim(store, project, run)
    elif what == "report":
        if run in project.held:
            await store.claims.record_result(run, f"pod-{run}", "nonce", DONE)
            project.held.discard(run)
    elif what in ("build", "built"):
        if run in project.waiting:
            conditions = [WAITING_FOR_BUILD] if what == "build" else []
            seen = builders.run(run, spec=spec, project=project.name, conditions=conditions)
            await store.run_writer.observe(seen, builders.NOW)
            (project.aside.add if conditions else project.aside.discard)(run)
    elif what == "cancel":
        phase = "Pending" if run in project.waiting else "Running"
        seen = builders.run(run, phase, spec={**spec, "cancel": True}, project=project.name)
        await store.run_writer.observe(seen, builders.NOW)
        project.canceled.add(run)
        if run in project.waiting:
            project.waiting.remove(run)
    else:
        if what == "end":
            await store.run_writer.observe(
                builders.run(run, "Failed", spec=spec, project=project.name), builders.NOW
            )
        else:
            await store.run_writer.mark_deleted(run, "run-uid", builders.NOW)
        project.over.add(run)
        project.held.discard(run)
        if run in project.waiting:
            project.waiting.remove(run)


async def claim(store: Store, project: QueueModel, run: str) -> None:
    answer = {"deployment_id": "dep_a"}
    asked = ClaimRequest("run-uid", f"pod-{run}", "nonce")
    found: Any = await store.claims.grant(run, asked, answer, builders.NOW, PLANS)
    if run not in project.waiting:
        # It was granted before: the claim returns the grant again, unless the run must stop.
        assert isinstance(found, ClaimDenied) if run in project.canceled else found.first is False
    elif project.free:
        assert isinstance(found, ClaimGranted) and found.first
        project.waiting.remove(run)
        project.held.add(run)
    else:
        assert found == ClaimWait()


@pytest.mark.parametrize("database_url", [None], ids=["sqlite"])
@settings(max_examples=2, deadline=None, suppress_health_check=SUPPRESSED)
@given(steps=STEPS)
async def test_position_matches_model(store: Store, steps: list[tuple[str, int, int]]) -> None:
    number = next(_numbers)
    projects = [QueueModel(f"one-{number}"), QueueModel(f"two-{number}")]
    for project in projects:
        for what in ("pro", "accept", "accept", "accept"):
            await step(store, project, what, None)
    for what, whose, which in steps:
        project = projects[whose]
        run = project.runs[which] if which < len(project.runs) else None
        await step(store, project, what, run)
        for each in projects:
            for one in each.runs:
                row = await store.runs.get(one)
                assert row is not None
                assert await store.run_queue.position(row, PLANS) == each.position(one), (what, one)
