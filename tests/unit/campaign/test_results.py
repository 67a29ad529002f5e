"""The results table has every test that ran, its violations, and the machine."""

import json

import pytest

from tests.campaign.reports.progress import minutes
from tests.campaign.reports.results import BEGIN, END, insert_table, lines, table


def line(
    name="test_component_kills", runs=50, broken=(), faults=None, at="2026-11-21T10:00:00Z", recovery=2.5
):
    violations = [{"kind": kind, "run": "run-a", "text": ""} for kind in broken]
    columns = [{"work": "Runs", "runs": runs, "violations": violations, "recovery": recovery}]
    return {
        "name": name,
        "at": at,
        "machine": "2 cores",
        "faults": faults or {"SIGKILL": 3},
        "columns": columns,
    }


def cells(text):
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines() if "`" in row]


def test_repeated_runs_of_a_test_are_summed_in_one_row():
    records = [
        line(broken=("doubled", "events", "lost")),
        line("test_other", faults={"a": 1, "b": 2}),
        line(at="2026-11-22T10:00:00Z", recovery=7.04),
    ]
    assert cells(table(records)) == [
        ["`test_component_kills` (× 2)", "Runs", "6 SIGKILL", "100", "1", "1", "0", "1", "7.0 s"],
        ["`test_other`", "Runs", "3: 1 a, 2 b", "50", "0", "0", "0", "0", "2.5 s"],
    ]
    assert table(records).endswith("\n\n2 cores, on 2026-11-21, 2026-11-22.")


def test_jobs_have_a_separate_row():
    one = line()
    one["columns"].append({"work": "Jobs", "runs": 20, "violations": [], "recovery": 9.0})
    assert [row[:2] + row[3:4] for row in cells(table([one]))] == [
        ["`test_component_kills`", "Runs", "50"],
        ["`test_component_kills`", "Jobs", "20"],
    ]


def test_seeded_bugs_count_by_their_last_attempt():
    about = {"at": "2026-11-21T10:00:00Z", "machine": "2 cores"}
    tries = [("a", False), ("b", True), ("c", False), ("a", True)]
    records = [{**about, "bug": bug, "caught": caught} for bug, caught in tries]
    assert "Seeded bugs caught: 2 of 3. 2 cores" in " ".join(table(records).split("\n"))


def test_all_directories_are_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.jsonl").write_text(json.dumps(line(name)) + "\n")
    assert [one["name"] for one in lines([tmp_path / "a", tmp_path / "b"])] == ["a", "b"]


def test_the_table_is_replaced_between_the_markers():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = insert_table(page, "new")
    assert once == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert insert_table(once, "new") == once
    with pytest.raises(ValueError, match="seen: begin"):
        insert_table("a page", "new")


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (187.9, "3:07"), (3723, "1:02:03")])
def test_minutes(seconds, text):
    assert minutes(seconds) == text
