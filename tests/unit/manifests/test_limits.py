"""The chart and the limits of the service: the same names and bounds, and each arrives as it is given."""

import json

import pytest

from controller.config import parse
from crds.installation_limits import KEYS, NAME, Limits
from tests.unit.manifests import rendering

SCHEMA = json.loads((rendering.CHART / "values.schema.json").read_text())["properties"]["limits"]


def config(*values):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    return objects["ConfigMap crewyard-system/crewyard-config"]["data"]


def test_the_schema_allows_what_the_service_takes():
    told = {name: (part["minimum"], part["maximum"]) for name, part in SCHEMA["properties"].items()}
    assert told == dict(KEYS)
    assert {part["type"] for part in SCHEMA["properties"].values()} == {"integer"}


@pytest.mark.parametrize("end", [0, 1])
def test_both_ends_of_each_limit_arrive_as_they_are(end):
    given = {name: ends[end] for name, ends in KEYS.items()}
    told = {**config(f"limits={json.dumps(given)}"), "CREWYARD_TOKEN_KEY": "k" * 32}
    assert json.loads(told[NAME]) == given
    # Neither end contradicts itself.
    assert parse(told).limits == Limits(**given)


@pytest.mark.parametrize("given", ['{"queue": 0}', '{"queue": "5"}', '{"quue": 5}', '{"ratio": 1033}'])
def test_helm_refuses_what_the_service_would(given):
    with pytest.raises(rendering.Refused, match="limits"):
        config(f"limits={given}")


def test_a_file_of_values_keeps_large_numbers_whole():
    assert json.loads(config(rendering.CHART / "ci" / "everything.yaml")[NAME])["artifact_bytes"] == 1 << 40
