"""Properties of the CRD documents: descriptions, names, columns, enums."""

import pytest

from crds import schema
from crds.kinds import OWN_KINDS
from crds.reasons import BuildReason, DeploymentPhase, RunPhase, RunReason


def fields(node, path):
    """Yield every field below a schema node, as (path, node)."""
    for name, child in (node.get("properties") or {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    if "items" in node:
        yield from fields(node["items"], f"{path}[]")


@pytest.mark.parametrize("kind", OWN_KINDS, ids=lambda kind: kind.name)
def test_every_field_is_described(kind):
    missing = [path for path, node in fields(schema.openapi(kind), kind.name) if not node.get("description")]
    assert [path for path in missing if not path.endswith(".metadata")] == []


@pytest.mark.parametrize("kind", OWN_KINDS, ids=lambda kind: kind.name)
def test_names_do_not_collide_with_built_in_kinds(kind):
    listed = schema.definition(kind)["spec"]["names"]
    assert listed["shortNames"] == [f"c{ {'Project': 'proj', 'Deployment': 'dep', 'Run': 'run'}[kind.name] }"]
    assert listed["categories"] == ["crewyard"]


@pytest.mark.parametrize("kind", OWN_KINDS, ids=lambda kind: kind.name)
def test_columns_start_with_the_state_and_end_with_the_age(kind):
    version = schema.definition(kind)["spec"]["versions"][0]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns[0] in ("Status", "Ready")
    assert columns[-1] == "Age"
    assert version["subresources"] == {"status": {}}


def test_phases_match_the_code():
    by_name = {kind.name: schema.openapi(kind)["properties"]["status"]["properties"] for kind in OWN_KINDS}
    assert by_name["Run"]["phase"]["enum"] == [*RunPhase]
    assert by_name["Deployment"]["phase"]["enum"] == [*DeploymentPhase]


def test_reasons_fit_the_schema():
    assert max(len(reason) for reason in (*BuildReason, *RunReason)) <= 64


def test_the_crew_that_was_deployed_fits_where_the_requested_one_does():
    project = schema.openapi(next(kind for kind in OWN_KINDS if kind.name == "Project"))["properties"]
    requested = project["spec"]["properties"]["source"]["properties"]["git"]["properties"]["crew"]
    recorded = project["status"]["properties"]["source"]["properties"]["crew"]
    assert recorded["maxLength"] == requested["maxLength"]


def test_validator_reports_invalid_fields():
    run = next(kind for kind in OWN_KINDS if kind.name == "Run")
    assert schema.validator(run).is_valid({"spec": {"project": "demo", "input": {"any": [1]}}})
    wrong = [
        error.json_path
        for error in schema.validator(run).iter_errors({"spec": {"project": "Demo!", "input": []}})
    ]
    assert sorted(wrong) == ["$.spec.input", "$.spec.project"]
