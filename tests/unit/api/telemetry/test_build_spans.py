"""The spans of builds."""

from datetime import datetime

import pytest

from api.telemetry.build_spans import build_spans
from crds.times import format_time
from tests.unit.api.telemetry.trace_rows import at, build_row

FAILED = {"status": "failed", "built": False}


def seconds(moment: datetime) -> float:
    return (moment - at(0)).total_seconds()


def outline(row) -> list[tuple]:
    return [(span.name, seconds(span.start), seconds(span.end), span.error) for span in build_spans(row)]


STAGES = [
    ("queued", 0, 10, None),
    ("fetch", 10, 11.5, None),
    ("plan", 11.5, 12, None),
    ("dependencies", 12, 72, None),
    ("assemble", 72, 84, None),
]


def test_a_build_has_its_stages_one_after_the_other():
    found = list(build_spans(build_row()))
    assert outline(build_row()) == [("build demo", 0, 90, None), *STAGES]
    assert found[0].parent_id is None
    assert {span.parent_id for span in found[1:]} == {found[0].span_id}
    assert found == list(build_spans(build_row(status="superseded")))
    assert dict(found[0].attributes) == {
        "openinference.span.kind": "CHAIN",
        "crewyard.deployment.id": "dep_a",
        "crewyard.project": "demo",
        "crewyard.deployment.status": "built",
        "vcs.ref.head.revision": "ab" * 20,
    }


@pytest.mark.parametrize(
    ("reason", "stages", "expected"),
    [
        ("ConfigInvalid", ["queued", "fetch", "plan"], "plan"),
        ("DependencyResolution", ["queued", "fetch", "plan", "dependencies"], "dependencies"),
        ("BuildTimeout", ["queued", "fetch", "plan", "dependencies"], "dependencies"),
        ("GitNotFound", ["queued"], None),
        ("BuildFailed", ["queued"], None),
        ("SmokeFailed", ["queued", "fetch", "plan", "assemble"], None),
        ("BuildFailed", [], None),
    ],
)
def test_a_build_fails_in_the_stage_of_its_reason(reason, stages, expected):
    error = {"reason": reason, "message": "why"}
    row = build_row(**FAILED, error=error, stages=tuple({"name": name, "seconds": 1} for name in stages))
    root, *found = build_spans(row)
    assert root.error == ("SmokeFailed" if reason == "SmokeFailed" else "why")
    assert root.attributes["error.type"] == reason
    assert [span.name for span in found if span.error] == ([expected] if expected else [])


@pytest.mark.parametrize("reason", ["Canceled", "Superseded"])
def test_a_build_that_was_given_up_did_not_fail(reason):
    [root] = build_spans(build_row(**FAILED, error={"reason": reason, "message": "why"}, stages=()))
    assert root.error is None and "error.type" not in root.attributes
    assert root.attributes["crewyard.deployment.reason"] == reason


def test_a_stage_that_did_not_end_lasts_to_the_end_of_the_build():
    stages = (
        {"name": "queued", "seconds": 10},
        {"name": "fetch", "startedAt": format_time(at(20).replace(microsecond=0))},
    )
    row = build_row(**FAILED, error={"reason": "BuildTimeout", "message": "why"}, stages=stages)
    assert outline(row)[1:] == [("queued", 0, 10, None), ("fetch", 19.75, 90, "why")]


def test_a_reused_image_has_no_stages():
    [root] = build_spans(build_row(stages=()))
    assert root.attributes["crewyard.deployment.image_reused"] is True
