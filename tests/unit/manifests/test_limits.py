"""The chart and the service's limits: the same names and bounds, passed on unchanged."""

import json

import pytest

from controller.config import parse
from crds.installation_limits import LIMITS_VARIABLE, RANGES, InstallationLimits
from tests.unit.manifests import rendering

SCHEMA = json.loads((rendering.CHART / "values.schema.json").read_text())["properties"]["limits"]


def config(*values):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    return objects["ConfigMap crewyard-system/crewyard-config"]["data"]


def test_the_schema_has_the_ranges_of_the_service():
    ranges = {name: (part["minimum"], part["maximum"]) for name, part in SCHEMA["properties"].items()}
    assert ranges == dict(RANGES)
    assert {part["type"] for part in SCHEMA["properties"].values()} == {"integer"}


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
