"""What manifests/monitoring ships, and the programs that judge it. Called by the tests of this folder."""

import functools
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from api.metrics import ApiMetrics as OfApi
from controller.observability.metrics import ControllerMetrics as OfController

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "manifests" / "monitoring"
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/bin"])


@functools.cache
def groups() -> list[dict]:
    """The groups of rules, as a plain Prometheus takes them."""
    return yaml.safe_load((PLACE / "rules.yaml").read_text())["spec"]["groups"]


def groups_of(alert: str) -> list[dict]:
    """The groups with the rule of one alert, and with all rules that record."""
    kept = [
        {**group, "rules": [rule for rule in group["rules"] if rule.get("alert", alert) == alert]}
        for group in groups()
    ]
    return [group for group in kept if group["rules"]]


def rules() -> list[dict]:
    """All rules."""
    return [rule for group in groups() for rule in group["rules"]]


def alerts() -> dict[str, dict]:
    """The alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard() -> dict:
    """The dashboard."""
    return json.loads((PLACE / "dashboard.json").read_text())


def panels() -> Iterator[dict]:
    """Its panels without the rows."""
    return (panel for panel in dashboard()["panels"] if panel["type"] != "row")


def queries() -> Iterator[tuple[str, str]]:
    """Each expression of each panel with the panel's title, as Grafana would send it."""
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"].replace("$namespace", ".+").replace("$__rate_interval", "1h")
            yield panel["title"], text


def names(expression: str) -> set[str]:
    """The names of series in an expression."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b((?:crewyard|process)[_:][a-zA-Z0-9_:]+|up)\b", bare))


def exported() -> dict[str, str]:
    """The names of series that both processes can show, with the metric that each belongs to."""
    from prometheus_client import CollectorRegistry

    from controller.gauges import add_gauges
    from controller.observability.health import HealthReadings
    from controller.runtime.cache import ObjectCache
    from controller.runtime.queues import Queues

    api, controller = OfApi(), OfController()
    readings = HealthReadings(0.0, "", 0.0, (), 0.0)
    add_gauges(controller.gauges, [ObjectCache()], [Queues(lambda: 0.0)], lambda: readings)
    suffixes = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
    found = {"up": "up"}
    for registry in (api.registry, controller.registry):
        assert isinstance(registry, CollectorRegistry)
        for family in registry.collect():
            total = "_total" if family.type == "counter" else ""
            for suffix in suffixes.get(family.type, ("",)):
                found[family.name + suffix] = family.name + total
    return found


def program(name: str) -> str:
    """A program of the package prometheus; without it the test is skipped."""
    path = shutil.which(name, path=_PATH)
    if path is None:
        pytest.skip(f"there is no {name}: `make tools` installs it")
    return path
