"""The figures page shows the stored measurements; goals are evaluated on the numbers."""

from datetime import UTC, datetime

import pytest

from bench.__main__ import MEASURES
from bench.lib import figures_page, results
from bench.lib.goals import GOALS, Goal, fact_number, goals_of, median, p99, p99_ratio, ratio
from bench.lib.results import result_file, write

COMPARED = {
    "code": "L9",
    "what": "start",
    "unit": "s",
    "peer": "a Job",
    "pairs": [[1.0, 1.0]] * 3,
    "comparison": {
        "pairs": 2, "peer": 1.0, "ours": 1.2, "ratio": 1.2, "ratio_min": 1.1, "ratio_max": 1.3,
        "peer_p99": 2.0, "ours_p99": 3.0,
    },
}  # fmt: skip
VALUES = {"code": "L9", "what": "alone", "unit": "ms", "values": [1.0, 2.0, 30.0], "fact": "lost 3 of 5"}


def test_the_page_is_current():
    page = figures_page.PAGE.read_text()
    expected = figures_page.with_table(page, figures_page.table(results.read_all(), list(MEASURES)))
    assert page == expected, "run `python -m bench.lib.figures_page`"


def test_stored_measurements_exist():
    assert {one["command"].partition("=")[0] for one in results.read_all()} <= set(MEASURES)


@pytest.mark.parametrize(
    ("reading", "record", "value"),
    [
        (ratio, COMPARED, 1.2),
        (p99_ratio, COMPARED, 1.5),
        (median, COMPARED, 1.2),
        (p99, COMPARED, 3.0),
        (median, VALUES, 2.0),
        (p99, VALUES, 30.0),
        (fact_number(r"lost (\d+)"), VALUES, 3.0),
    ],
)
def test_a_number_of_a_finding(reading, record, value):
    assert reading(record) == value


def test_a_fact_without_the_number_is_an_error():
    with pytest.raises(ValueError, match="no 'kept"):
        fact_number(r"kept (\d+)")(VALUES)


@pytest.mark.parametrize(
    ("bound", "least", "line"),
    [
        (1.2, False, "≤ 1.2"),
        (1.1, False, "**≤ 1.1: missed**"),
        (1.2, True, "≥ 1.2"),
        (1.3, True, "**≥ 1.3: missed**"),
    ],
)
def test_a_goal_is_reached_or_missed(bound, least, line):
    assert Goal("L9", "start", ratio, bound, least=least).line(COMPARED) == line


def test_a_changed_goal_shows_its_first_bound():
    assert Goal("L9", "start", ratio, 1.3, first=1).line(COMPARED) == "≤ 1.3 (first ≤ 1)"
    goal = Goal("L9", "start", ratio, 1.3, "of all", least=True, first=2)
    assert goal.line(COMPARED) == "**≥ 1.3 of all (first ≥ 2): missed**"


def test_a_table_names_load_and_day():
    measurement = {
        "command": "L9",
        "begun": "2026-01-02T03:04:05+00:00",
        "machine": "2 cores, load 0.5",
        "findings": [COMPARED],
    }
    assert figures_page.table([measurement], ["L9"]).endswith("| `L9`, 0.5, 2026-01-02 |\n")


def test_a_goal_is_about_its_own_findings():
    goal = Goal("L9", "start", ratio, 1, peer="a Pod")
    assert not goal.concerns(COMPARED)
    assert Goal("L9", "sta", ratio, 1).concerns(COMPARED)
    assert not Goal("L8", "start", ratio, 1).concerns(COMPARED)
    assert goals_of(VALUES) == []


def test_every_goal_is_about_a_measurement():
    names = {goal.code for goal in GOALS}
    # B3, L3 and W2 come with B1, L1 and W1.
    assert names - {"B3", "L3", "W2"} <= set(MEASURES)


def test_rows():
    row = figures_page.row(COMPARED, "`L9`, 1.0")
    assert row == "| start | 1.2 s | a Job: 1 s | 1.20 (1.10 to 1.30, n=2) |  | `L9`, 1.0 |"
    row = figures_page.row(VALUES, "`L9`, 1.0")
    assert row == "| alone | 2 ms (1 to 30 ms, n=3); lost 3 of 5 |  |  |  | `L9`, 1.0 |"


def test_a_page_without_markers_is_an_error():
    with pytest.raises(ValueError, match="has no"):
        figures_page.with_table("# Figures\n", "")


def test_written_measurements_are_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "DIRECTORY", tmp_path / "taken")
    write("T1", 500, datetime(2026, 1, 2, tzinfo=UTC), "2 cores, load 0.5", [{"values": [1 / 3]}])
    assert result_file("T1", 500).name == "T1-500.json"
    (stored,) = results.read_all()
    assert stored == {
        "command": "T1=500",
        "begun": "2026-01-02T00:00:00+00:00",
        "machine": "2 cores, load 0.5",
        "findings": [{"values": [0.333333]}],
    }
