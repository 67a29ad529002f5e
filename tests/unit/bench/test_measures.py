"""Pure parts of the measurements: lost lines, sums of metrics, arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.__main__ import LONG_MEASURES, MEASURES, parse
from bench.lib.finding import Finding
from bench.runs.million_lines import count_defects
from bench.runs.writes import metric_sum
from bench.sources.redeploy import code_changed, dependency_added, example_tree


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 2, 3], (0, 0, 0)),
        ([0, 1, 3], (1, 0, 0)),
        ([0, 1, 1, 2, 3], (0, 1, 0)),
        ([0, 2, 1, 3], (0, 0, 1)),
        ([], (4, 0, 0)),
    ],
)
def test_lost_duplicated_and_reordered_lines(numbers, expected):
    assert count_defects(numbers, 4) == expected


@given(st.integers(1, 200), st.data())
def test_missing_numbers_are_lost(count, data):
    missing = data.draw(st.sets(st.integers(0, count - 1)))
    assert count_defects([number for number in range(count) if number not in missing], count) == (
        len(missing),
        0,
        0,
    )


METRICS = """# HELP writes_total Writes.
# TYPE writes_total counter
writes_total{kind="Run",verb="patch"} 12.0
writes_total{kind="Pod",verb="create"} 3.0
writes_total{kind="Event",verb="create"} 9.0
other_total{kind="Run",verb="patch"} 100.0
"""


def test_samples_are_summed_by_name_and_labels():
    assert metric_sum(METRICS, "writes_total") == 24
    assert metric_sum(METRICS, "writes_total", kind="Run") == 12
    assert metric_sum(METRICS, "writes_total", verb="create", kind="Pod") == 3
    assert metric_sum(METRICS, "writes_total", kind="Job") == 0


def test_parse_arguments():
    assert list(parse([])) == [name for name in MEASURES if name not in LONG_MEASURES]
    assert parse(["T1=500", "L1=101", "L2"]) == {"T1": 500, "L1": 101, "L2": None}
    for wrong in (["L9"], ["L2=3"], ["T1=many"]):
        with pytest.raises(ValueError, match=r"measurement|count"):
            parse(wrong)


def test_changes_of_an_example():
    files = {"main.py": b"", "requirements.txt": b"langgraph==1\n"}
    changed = code_changed(files, 1)
    assert changed["requirements.txt"] == files["requirements.txt"] and changed != files
    first, second = dependency_added(files, 0), dependency_added(files, 1)
    assert first["requirements.txt"] != second["requirements.txt"]
    assert first["requirements.txt"].startswith(b"langgraph==1\nidna==")


def test_the_peer_installs_the_examples_dependencies():
    assert b"crewai==" in example_tree("crewai")["requirements.txt"]
    assert b"langgraph==" in example_tree("langgraph")["requirements.txt"]


def test_line_and_record_of_a_finding():
    finding = Finding("L1", "start", pairs=[(9.0, 9.0), (1.0, 2.0)], peer="Job")
    assert finding.line() == (
        "L1 start (peer: Job): ours 2 s, peer 1 s (medians of 1); ratio 2.00 (2.00 to 2.00)"
    )
    assert finding.record()["comparison"]["ratio"] == 2.0
    assert Finding("T2", "writes", "", fact="3 each").line() == "T2 writes: 3 each"
