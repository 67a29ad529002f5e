"""One writer per field."""

import json

from crds.times import parse_time


def written(entry) -> set[str]:
    """The fields of spec and status that one manager wrote, two levels deep."""
    fields = entry["fieldsV1"]
    found = set()
    for part in ("spec", "status"):
        for name in fields.get(f"f:{part}", {}):
            if name.startswith("f:"):
                found.add(f"{part}.{name[2:]}")
    return found


async def test_every_run_field_has_one_writer(testbed, crew):
    run = await crew.run("kickoff", input={})
    shown = await testbed.kubectl(
        "get", "crun", run["id"].replace("_", "-", 1), "-o", "json", "--show-managed-fields"
    )
    raw = json.loads(shown)
    by_manager: dict[str, set[str]] = {}
    for entry in raw["metadata"]["managedFields"]:
        by_manager.setdefault(entry["manager"], set()).update(written(entry))
    assert set(by_manager) == {"crewyard-api", "crewyard-controller"}
    assert by_manager["crewyard-api"] & by_manager["crewyard-controller"] == set()
    assert {name for name in by_manager["crewyard-api"] if name.startswith("status.")} == {
        "status.claim",
        "status.result",
    }
    assert not {name for name in by_manager["crewyard-controller"] if name.startswith("spec.")}
    assert parse_time(raw["status"]["startTime"]) <= parse_time(raw["status"]["completionTime"])
