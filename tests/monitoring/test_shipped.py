"""Rules, dashboard and page agree with what the processes show."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.monitoring import shipped

PAGE = (shipped.ROOT / "docs" / "monitoring.md").read_text()
ROWS = [
    "Overview",
    "Runs",
    "Builds",
    "GitOps",
    "API",
    "Streams",
    "Controller",
    "Storage",
    "Schedules, notifications, audit",
]


def known():
    return set(shipped.exported()) | {rule["record"] for rule in shipped.rules() if "record" in rule}


@pytest.mark.parametrize("rule", shipped.rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_rule_queries_existing_series(rule):
    assert shipped.names(rule["expr"]) and shipped.names(rule["expr"]) <= known()


def test_panels_query_existing_series():
    for title, expression in shipped.queries():
        assert shipped.names(expression) and shipped.names(expression) <= known(), title


def test_every_panel_has_description_and_unit():
    for panel in shipped.panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    titles = [(panel["title"], panel["gridPos"]["y"]) for panel in shipped.panels()]
    assert len(titles) == len(set(titles))


def unknown_to_grafana(board):
    """Return the paths of a dashboard that the schema of Grafana does not have; it adds defaults."""
    register_default_plugins()
    return list(lost(board, json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder)), ""))


def lost(ours, theirs, path):
    """Yield the paths of what one JSON value has and the other has not."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            yield from lost(value, theirs.get(name), f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            yield from lost(one, other, path)
    elif ours != theirs:
        yield path


def test_grafana_knows_every_field_of_the_dashboard():
    assert unknown_to_grafana(shipped.dashboard()) == []


@pytest.mark.parametrize(
    "path",
    [("titel",), ("options", "legned"), ("fieldConfig", "defaults", "custom", "fill"), ("targets", "exp")],
)
def test_a_field_that_grafana_does_not_know_is_found(path):
    board = shipped.dashboard()
    place = next(panel for panel in board["panels"] if panel["type"] == "timeseries")
    for name in path[:-1]:
        place = place[name][0] if name == "targets" else place[name]
    place[path[-1]] = "x"
    assert unknown_to_grafana(board) == [".panels." + ".".join(path)]


def test_dashboard_is_complete():
    board = shipped.dashboard()
    assert [panel["title"] for panel in board["panels"] if panel["type"] == "row"] == ROWS
    assert [entry["name"] for entry in board["templating"]["list"]] == ["datasource", "namespace"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(places) == len(set(places)) and all(x + w <= 24 for _, w, x, _ in places)


def test_every_metric_is_documented():
    ours = {name for name in shipped.exported().values() if name.startswith("crewyard_")}
    documented = set(re.findall(r"^\| `(crewyard_\w+)`", PAGE, re.MULTILINE))
    assert documented == ours


def test_every_metric_is_used():
    seen = set()
    for expression in [rule["expr"] for rule in shipped.rules()] + [text for _, text in shipped.queries()]:
        seen |= {shipped.exported().get(name) for name in shipped.names(expression)}
    assert {name for name in shipped.exported().values() if name.startswith("crewyard_")} <= seen


def test_kustomization_includes_all_files():
    argv = [
        shutil.which("kubectl") or pytest.skip("no kubectl: `make up` builds it"),
        "kustomize",
        shipped.PLACE,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    made = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout)}
    names = {("ServiceMonitor", "crewyard-api"), ("ServiceMonitor", "crewyard-controller")}
    assert set(made) == {*names, ("PrometheusRule", "crewyard"), ("ConfigMap", "crewyard-dashboard")}
    board = made["ConfigMap", "crewyard-dashboard"]
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["crewyard.json"]) == shipped.dashboard()
    assert {one["metadata"]["namespace"] for one in made.values()} == {"crewyard-system"}


def test_jobs_have_service_names():
    services = {
        found["metadata"]["name"]: found
        for page in ("api.yaml", "controller.yaml")
        for found in yaml.safe_load_all((shipped.ROOT / "manifests" / "base" / page).read_text())
        if found["kind"] == "Service"
    }
    monitors = list(yaml.safe_load_all((shipped.PLACE / "scrape.yaml").read_text()))
    for monitor in monitors:
        service = services[monitor["metadata"]["name"]]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert {monitor["metadata"]["name"] for monitor in monitors} == set(services)


def test_page_names_the_prometheus_access_label():
    policies = (shipped.ROOT / "manifests" / "base" / "network-policies.yaml").read_text()
    assert 'crewyard.dev/metrics: "true"' in policies and 'crewyard.dev/metrics: "true"' in PAGE
