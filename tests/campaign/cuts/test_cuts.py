"""The processes are killed before and after each single write of a run and of a deployment.

For each write the final state equals the state without a kill.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.campaign.bugs.bug import copied
from tests.campaign.checks import observation
from tests.campaign.checks.checker import WRONG_END, Violation
from tests.campaign.cuts import passes
from tests.campaign.cuts.image_deletion import DeletedImages
from tests.campaign.cuts.passes import PassReport
from tests.campaign.cuts.scenario import (
    AppliedRun,
    BuiltDeployment,
    CommittedDeployment,
    EssentialRun,
    PrunedRun,
    RolledBackDeployment,
    Scenario,
    SubmittedRun,
    WarmBuiltDeployment,
    WarmRun,
)
from tests.campaign.cuts.stage import stage
from tests.campaign.reports import report as figures
from tests.campaign.reports.report import ReportColumn, require_good
from tests.campaign.testbed import ROOT

SETTLE = "prune_settle: float = 30.0"


def tree_with_short_settle(directory) -> Path:
    """A copy of the product that removes a second after it has announced that, not thirty."""
    tree = copied(ROOT, directory)
    place = tree / "controller/config.py"
    text = place.read_text()
    assert text.count(SETTLE) == 1, f"controller/config.py has no {SETTLE!r} any more"
    place.write_text(text.replace(SETTLE, "prune_settle: float = 1.0"))
    return tree


def commits(scenarios: tuple[Scenario, ...]) -> bool:
    """Return whether one of the scenarios is a commit that its project follows."""
    return any(
        isinstance(scenario, CommittedDeployment | BuiltDeployment | DeletedImages) for scenario in scenarios
    )


async def run_scenarios(directory, scenarios: tuple[Scenario, ...]) -> PassReport:
    """All passes of some scenarios, on a stage of their own."""
    report = PassReport()
    tree = (
        tree_with_short_settle(directory)
        if any(isinstance(scenario, DeletedImages) for scenario in scenarios)
        else ROOT
    )
    async with stage(directory, commits(scenarios), tree) as made:
        for scenario in scenarios:
            base = await passes.run_baseline(made, scenario)
            for point in base.points:
                if scenario.only_essential and str(point) not in (*scenario.essential, *scenario.possible):
                    continue
                for applied in (False, True):
                    report.add(await passes.cut(made, base, point, applied))
        report.wrong += await passes.later_changes(made)
        for texts in await observation.stored(made.testbed, {}):
            report.wrong += texts
    return report


async def judge(name: str, directory, *stages: tuple[Scenario, ...]) -> None:
    """Run the stages in parallel."""
    works = [run_scenarios(directory / str(number), scenarios) for number, scenarios in enumerate(stages)]
    report = PassReport()
    for other in await asyncio.gather(*works):
        report.add(other)
    essential = [words for words in report.missed if any(
        words.startswith(f"{scenario.name}, {write},")
        for scenarios in stages for scenario in scenarios for write in scenario.essential
    )]  # fmt: skip
    wrong = tuple(Violation(WRONG_END, "", words) for words in report.wrong)
    column = ReportColumn("cuts", report.passes, wrong, max(report.seconds, default=0.0))
    notes = tuple(f"not reached: {words}" for words in report.missed)
    require_good(
        figures.CampaignReport(name, Counter({"kill at a write": report.kills}), (column,), notes=notes)
    )
    assert essential == []


@pytest.mark.timeout(3600)
async def test_kills_at_essential_run_writes(request, tmp_path):
    """Slow: two kills at each write that every run makes."""
    await judge(request.node.name, tmp_path, (EssentialRun(),))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
async def test_kills_at_run_writes(request, tmp_path):
    """Slow: two kills at each write of a run."""
    await judge(request.node.name, tmp_path, (SubmittedRun(),))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
async def test_kills_at_deployment_writes(request, tmp_path):
    """Slow: two kills at each write of a deployment that reuses an image, and of one that builds it."""
    await judge(request.node.name, tmp_path, (CommittedDeployment(),), (BuiltDeployment(),))


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_kills_at_the_writes_of_a_run_that_takes_a_waiting_pod(request, tmp_path):
    await judge(request.node.name, tmp_path, (WarmRun(),))


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_kills_at_the_writes_of_a_build_that_takes_a_waiting_pod(request, tmp_path):
    await judge(request.node.name, tmp_path, (WarmBuiltDeployment(),))


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_kills_at_cancel_rollback_and_pruning_writes(request, tmp_path):
    await judge(
        request.node.name,
        tmp_path,
        (AppliedRun(), PrunedRun()),
        (RolledBackDeployment(),),
    )


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_kills_at_deployment_and_image_deletion_writes(request, tmp_path):
    await judge(request.node.name, tmp_path, (DeletedImages(),))


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "scenarios",
    [(AppliedRun(), PrunedRun()), (RolledBackDeployment(),), (WarmRun(),), (WarmBuiltDeployment(),)],
    ids=lambda scenarios: scenarios[0].name,
)
async def test_scenario_makes_its_essential_writes_without_a_kill(tmp_path, scenarios):
    """The campaign kills at these writes, which it knows by name."""
    async with stage(tmp_path, commits(scenarios), ROOT) as made:
        for scenario in scenarios:
            base = await passes.run_baseline(made, scenario)
            assert set(scenario.essential) <= {str(point) for point in base.points}
