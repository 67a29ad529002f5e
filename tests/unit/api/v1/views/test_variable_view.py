"""Environment variables as the Secret of a project and as JSON."""

import json

import pytest

from api.v1.env import view
from tests.unit.api.conftest import NOW

UPDATED = "crewyard.dev/updatedAt"
LABELS = {
    "crewyard.dev/project": "demo",
    "app.kubernetes.io/managed-by": "crewyard",
    "app.kubernetes.io/part-of": "crewyard",
}
EARLIER, NOW_TEXT = "2026-11-20T10:00:00Z", "2026-11-21T10:00:00Z"


def secret(data, times=None, **metadata):
    annotations = {} if times is None else {"annotations": {UPDATED: times}}
    return {"metadata": {"resourceVersion": "7", **annotations, **metadata}, "data": data}


def patch(data, times):
    metadata = {"resourceVersion": "7", "labels": LABELS, "annotations": {UPDATED: json.dumps(times)}}
    return {"metadata": metadata, "data": data}


def test_secret_of_a_project_is_owned_by_it():
    assert view.new_secret("demo", "uid-1", {"TIDE": "neap", "MOON": ""}, NOW) == {
        "metadata": {
            "name": "demo-env",
            "labels": LABELS,
            "annotations": {UPDATED: json.dumps({"MOON": NOW_TEXT, "TIDE": NOW_TEXT})},
            "ownerReferences": [
                {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "demo", "uid": "uid-1"}
            ],
        },
        "type": "Opaque",
        "data": {"TIDE": "bmVhcA==", "MOON": ""},
    }


def test_sizes_are_bytes_of_names_and_values():
    assert view.size({"TIDE": "é", "A": "x"}) == 4 + 2 + 1 + 1
    assert view.stored_sizes(secret({"TIDE": "w6k=", "A": "eA=="})) == {"TIDE": 6, "A": 2}
    assert view.stored_sizes({"metadata": {}}) == {}


def test_replaced_variables_keep_the_time_of_an_equal_value():
    before = secret(
        {"KEPT": "eA==", "CHANGED": "eA==", "GONE": "eA=="},
        json.dumps(dict.fromkeys(("KEPT", "CHANGED", "GONE", "ABSENT"), EARLIER)),
    )
    after = {"NEW": "x", "KEPT": "x", "CHANGED": "y", "ABSENT": "x"}
    assert view.replace_patch(before, "demo", after, NOW) == patch(
        {"GONE": None, "NEW": "eA==", "KEPT": "eA==", "CHANGED": "eQ==", "ABSENT": "eA=="},
        {"ABSENT": NOW_TEXT, "CHANGED": NOW_TEXT, "KEPT": EARLIER, "NEW": NOW_TEXT},
    )
    assert view.replace_patch({"metadata": {"resourceVersion": "7"}}, "demo", {}, NOW) == patch({}, {})


@pytest.mark.parametrize(
    ("value", "data", "times"),
    [("x", {"TIDE": "eA=="}, {"MOON": EARLIER, "TIDE": NOW_TEXT}), (None, {"TIDE": None}, {"MOON": EARLIER})],
)
def test_one_variable_is_set_or_removed(value, data, times):
    before = secret({"TIDE": "eA==", "MOON": "eA=="}, json.dumps({"TIDE": EARLIER, "MOON": EARLIER}))
    assert view.variable_patch(before, "demo", "TIDE", value, NOW) == patch(data, times)


@pytest.mark.parametrize(
    ("times", "metadata", "shown"),
    [
        (f'{{"TIDE": "{EARLIER}"}}', {"creationTimestamp": NOW_TEXT}, {"MOON": NOW_TEXT, "TIDE": EARLIER}),
        (
            None,
            {
                "creationTimestamp": "2026-11-22T10:00:00Z",
                "managedFields": [{"time": NOW_TEXT}, {"manager": "x"}, {"time": EARLIER}],
            },
            {"MOON": NOW_TEXT, "TIDE": NOW_TEXT},
        ),
        ("not JSON", {}, {"MOON": "", "TIDE": ""}),
        ("[" * 100_000, {}, {"MOON": "", "TIDE": ""}),
        ("[]", {"creationTimestamp": EARLIER}, {"MOON": EARLIER, "TIDE": EARLIER}),
        ('{"TIDE": 5}', {"creationTimestamp": EARLIER}, {"MOON": EARLIER, "TIDE": EARLIER}),
        ("", {"creationTimestamp": EARLIER}, {"MOON": EARLIER, "TIDE": EARLIER}),
    ],
)
def test_variables_are_shown_by_name_with_the_time_of_their_change(times, metadata, shown):
    found = secret({"TIDE": "eA==", "MOON": "eA=="}, times, **metadata)
    assert view.items(found) == [{"name": name, "updated_at": time} for name, time in shown.items()]


def test_project_without_a_secret_has_no_variables():
    assert view.items(None) == view.items({"metadata": {}}) == []
