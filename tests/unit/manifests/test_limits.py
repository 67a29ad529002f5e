"""The chart and the service's limits: the same names and bounds, passed on unchanged."""

import json

import pytest

from controller.config import parse
from crds.installation_limits import RANGES, LIMITS_VARIABLE, InstallationLimits
from tests.unit.manifests import rendering

SCHEMA = json.loads((rendering.CHART / "values.schema.json").read_text())["properties"]["limits"]


def config(*values):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    return objects["ConfigMap crewyard-system/crewyard-config"]["data"]


def test_the_schema_has_the_ranges_of_the_service():
    told = {name: (part["minimum"], part["maximum"]) for name, part in SCHEMA["properties"].items()}
    assert told == dict(RANGES)
    assert {part["type"] for part in SCHEMA["properties"].values()} == {"integer"}


@pytest.mark.parametrize("end", [0, 1])
def test_both_bounds_of_each_limit_are_accepted(end):
    given = {name: ends[end] for name, ends in RANGES.items()}
    told = {**config(f"limits={json.dumps(given)}"), "CREWYARD_TOKEN_KEY": "k" * 32}
    assert json.loads(told[LIMITS_VARIABLE]) == given
    # Both ends are consistent.
    assert parse(told).limits == InstallationLimits(**given)


@pytest.mark.parametrize("given", ['{"queue": 0}', '{"queue": "5"}', '{"quue": 5}', '{"ratio": 1033}'])
def test_helm_refuses_invalid_limits(given):
    with pytest.raises(rendering.RenderError, match="limits"):
        config(f"limits={given}")


def test_large_numbers_in_values_files_stay_exact():
    assert (
        json.loads(config(rendering.CHART / "ci" / "everything.yaml")[LIMITS_VARIABLE])["artifact_bytes"]
        == 1 << 40
    )
