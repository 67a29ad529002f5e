"""The campaign's report fails after a violation, and without any fault."""

from collections import Counter

import pytest

from tests.campaign.checks.checker import DOUBLED, LOST, Violation
from tests.campaign.reports.report import CampaignReport, ReportColumn, require_good

RUNS = ReportColumn("Runs", 50, (), 2.5)
JOBS = ReportColumn(
    "Jobs", 50, (Violation(DOUBLED, "job-a", "2 starts"), Violation(LOST, "job-b", "no end")), 9.0
)


def report(column=RUNS, faults=3):
    return CampaignReport(
        "test_component_kills", Counter({"controller SIGKILL": faults}), (column, JOBS), seed=42
    )


def rows(text):
    lines = [line.split() for line in text.splitlines()]
    return {" ".join(line[:-2]): line[-2:] for line in lines if len(line) > 2}


def test_runs_and_jobs_are_columns(capsys):
    require_good(report())
    table = rows(capsys.readouterr().out)
    assert (table["runs"], table["lost"], table["doubled"]) == (["50", "50"], ["0", "1"], ["0", "1"])
    assert table["worst recovery, s"] == ["2.5", "9.0"]


def test_a_violation_fails_with_the_command_that_reproduces_it():
    broken = ReportColumn("Runs", 50, (Violation(DOUBLED, "run-a", "2 starts"),))
    with pytest.raises(AssertionError, match="make campaign SEED=42 ONLY=test_component_kills") as failure:
        require_good(report(broken))
    assert "doubled run-a: 2 starts" in str(failure.value)


def test_without_a_fault_the_report_fails():
    with pytest.raises(AssertionError, match="no fault was injected"):
        require_good(report(faults=0))


def test_figures_are_stored_in_the_configured_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CREWYARD_CAMPAIGN_REPORT", str(tmp_path / "figures"))
    require_good(report())
    require_good(report())
    assert len((tmp_path / "figures" / "campaign.jsonl").read_text().splitlines()) == 2
