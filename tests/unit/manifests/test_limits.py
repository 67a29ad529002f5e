"""The chart and the service's limits: the same names and bounds, passed on unchanged."""

import json

import pytest

from controller.config import parse
from crds.installation_limits import LIMITS_VARIABLE, RANGES, InstallationLimits
from crds.limits import PLAN_LIMITS, parse_plans
from tests.unit.manifests import rendering

VALUES_SCHEMA = json.loads((rendering.CHART / "values.schema.json").read_text())["properties"]
SCHEMA = VALUES_SCHEMA["limits"]


def config(*values):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    return objects["ConfigMap crewyard-system/crewyard-config"]["data"]


def test_the_schema_has_the_ranges_of_the_service():
    ranges = {name: (part["minimum"], part["maximum"]) for name, part in SCHEMA["properties"].items()}
    assert ranges == dict(RANGES)
    assert {part["type"] for part in SCHEMA["properties"].values()} == {"integer"}


def test_the_schema_of_a_plan_has_the_limits_that_a_plan_lowers():
    found = VALUES_SCHEMA["plans"]["additionalProperties"]["properties"]["limits"]["properties"]
    assert found == {name: SCHEMA["properties"][name] for name in PLAN_LIMITS}


def test_the_limits_of_a_plan_reach_the_service():
    limits = {name: RANGES[name][1] for name in PLAN_LIMITS}
    plan = {"requests_per_minute": 1, "concurrent_runs": 1, "limits": limits}
    text = config(f"plans={json.dumps({'trial': plan})}")["CREWYARD_PLANS"]
    assert parse_plans(text).of("trial").limits == limits


@pytest.mark.parametrize("end", [0, 1])
def test_both_bounds_of_each_limit_are_accepted(end):
    limits = {name: ends[end] for name, ends in RANGES.items()}
    environment = {**config(f"limits={json.dumps(limits)}"), "CREWYARD_TOKEN_KEY": "k" * 32}
    assert json.loads(environment[LIMITS_VARIABLE]) == limits
    # Both ends are consistent.
    assert parse(environment).limits == InstallationLimits(**limits)


@pytest.mark.parametrize("limits", ['{"queue": 0}', '{"queue": "5"}', '{"quue": 5}', '{"ratio": 1033}'])
def test_helm_refuses_invalid_limits(limits):
    with pytest.raises(rendering.RenderError, match="limits"):
        config(f"limits={limits}")


def test_large_numbers_in_values_files_stay_exact():
    assert (
        json.loads(config(rendering.CHART / "ci" / "everything.yaml")[LIMITS_VARIABLE])["artifact_bytes"]
        == 1 << 40
    )
