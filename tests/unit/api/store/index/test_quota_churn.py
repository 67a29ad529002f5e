"""Whatever happens in whatever order: who waits is told the place that a list of the waiting would tell."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.store.index.claims.claims import Asked, Denied, Granted, Wait
from api.store.store import Store
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders as some

PLANS = Plans({"free": PlanLimits(60, 0), "pro": PlanLimits(300, 1), "team": PlanLimits(600, 2)})
DONE = {"outcome": "succeeded", "durationMs": 1}
WAITS = {"type": "Succeeded", "status": "Unknown", "reason": "WaitingForDeployment", "message": "m"}
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
class Project:
    """A project's queue by the rules: its runs in the order of their coming, and who holds a place."""

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


async def step(store: Store, project: Project, what: str, run: str | None) -> None:
    spec = {"project": project.name, "deployment": "dep-a"}
    if what in ("free", "pro", "team"):
        project.plan = what
        await store.projects.observe(some.project(project.name, f"uid-{project.name}", plan=what))
    elif what == "accept":
        made = await some.accepted(store, project=project.name)
        await store.record.observe(some.run(made, spec=spec, project=project.name), some.NOW)
        project.runs.append(made)
        project.waiting.append(made)
    elif run is None or run in project.over:
        return
    elif what == "claim":
        await claim(store, project, run)
    elif what == "report":
        if run in project.held:
            await store.claims.report(run, f"pod-{run}", "nonce", DONE)
            project.held.discard(run)
    elif what in ("build", "built"):
        if run in project.waiting:
            told = [WAITS] if what == "build" else []
            seen = some.run(run, spec=spec, project=project.name, conditions=told)
            await store.record.observe(seen, some.NOW)
            (project.aside.add if told else project.aside.discard)(run)
    elif what == "cancel":
        phase = "Pending" if run in project.waiting else "Running"
        seen = some.run(run, phase, spec={**spec, "cancel": True}, project=project.name)
        await store.record.observe(seen, some.NOW)
        project.canceled.add(run)
        if run in project.waiting:
            project.waiting.remove(run)
    else:
        if what == "end":
            await store.record.observe(some.run(run, "Failed", spec=spec, project=project.name), some.NOW)
        else:
            await store.record.vanish(run, "run-uid", some.NOW)
        project.over.add(run)
        project.held.discard(run)
        if run in project.waiting:
            project.waiting.remove(run)


async def claim(store: Store, project: Project, run: str) -> None:
    answer = {"deployment_id": "dep_a"}
    asked = Asked("run-uid", f"pod-{run}", "nonce")
    found: Any = await store.claims.ask(run, asked, answer, some.NOW, PLANS)
    if run not in project.waiting:
        # It was granted before, and is told so again unless it is to stop.
        assert isinstance(found, Denied) if run in project.canceled else found.first is False
    elif project.free:
        assert isinstance(found, Granted) and found.first
        project.waiting.remove(run)
        project.held.add(run)
    else:
        assert found == Wait()


@pytest.mark.parametrize("database_url", [None], ids=["sqlite"])
@settings(max_examples=2, deadline=None, suppress_health_check=SUPPRESSED)
@given(steps=STEPS)
async def test_a_position_is_that_in_the_list_of_the_waiting(
    store: Store, steps: list[tuple[str, int, int]]
) -> None:
    number = next(_numbers)
    projects = [Project(f"one-{number}"), Project(f"two-{number}")]
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
                assert await store.places.position(row, PLANS) == each.position(one), (what, one)
