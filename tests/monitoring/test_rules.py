"""The rules, by Prometheus' own tool: each alert fires under some series and stays silent under others."""

import re
import subprocess

import pytest
import yaml

from tests.monitoring import shipped
from tests.monitoring.cases import CASES

PAGE = shipped.ROOT / "docs" / "monitoring.md"


@pytest.fixture
def promtool(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": shipped.groups()}))

    def run(*arguments):
        argv = [shipped.program("promtool"), *arguments]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_prometheus_accepts_the_rules(promtool):
    assert f"{len(shipped.rules())} rules found" in promtool("check", "rules", "--lint=all", "rules.yaml")


def _expected(alert, series, at, count):
    seen = [{"labels": "{}", "value": count}] if count else []
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{at}m", "exp_samples": seen}],
    }


@pytest.mark.parametrize("alert", shipped.alerts())
def test_alert_fires_only_in_its_case(promtool, tmp_path, alert):
    """With its own rule alone: promtool evaluates every rule at every minute of every case."""
    cases = [case for case in CASES if case.alert == alert]
    fires = [_expected(alert, case.fires, case.at, 1) for case in cases if case.fires]
    silent = [_expected(alert, case.silent, case.at, 0) for case in cases if case.silent]
    (tmp_path / "rule.yaml").write_text(yaml.safe_dump({"groups": shipped.groups_of(alert)}))
    book = {"rule_files": ["rule.yaml"], "evaluation_interval": "1m", "tests": fires + silent}
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(book))
    promtool("test", "rules", "cases.yaml")


def test_every_alert_has_firing_and_quiet_cases():
    assert {case.alert for case in CASES if case.fires} == set(shipped.alerts())
    assert {case.alert for case in CASES if case.silent} == set(shipped.alerts())


def test_every_alert_has_summary_value_and_runbook():
    headings = set(re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE))
    for name, rule in shipped.alerts().items():
        annotations = rule["annotations"]
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert re.search(r"\d|\$value|every|minute", annotations["description"]), name
        assert annotations["runbook_url"] == f"docs/monitoring.md#{name.lower()}", name
    assert headings == set(shipped.alerts())


def test_alert_texts_have_values(promtool, tmp_path):
    rule = shipped.alerts()["CrewyardDiskFull"]
    annotations = {**rule["annotations"], "description": rule["annotations"]["description"]}
    annotations["description"] = re.sub(r"\{\{.*?\}\}", "4%", annotations["description"])
    case = {
        "interval": "1m",
        "input_series": [
            {"series": 'crewyard_data_free_bytes{namespace="n"}', "values": "4x20"},
            {"series": 'crewyard_data_size_bytes{namespace="n"}', "values": "100x20"},
        ],
        "alert_rule_test": [
            {
                "alertname": "CrewyardDiskFull",
                "eval_time": "10m",
                "exp_alerts": [
                    {"exp_labels": {"severity": "critical", "namespace": "n"}, "exp_annotations": annotations}
                ],
            }
        ],
    }
    book = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (tmp_path / "texts.yaml").write_text(yaml.safe_dump(book))
    promtool("test", "rules", "texts.yaml")
