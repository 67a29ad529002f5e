"""One writer per field, and nobody may do more than that."""

import json
import re

import pytest

from crds.times import parse_time

SYSTEM = "crewyard-system"


def written(entry) -> set[str]:
    """The fields of spec and status that one manager wrote, two levels deep."""
    fields = entry["fieldsV1"]
    found = set()
    for part in ("spec", "status"):
        for name in fields.get(f"f:{part}", {}):
            if name.startswith("f:"):
                found.add(f"{part}.{name[2:]}")
    return found


async def test_every_field_of_a_run_has_one_writer(yard, crew):
    run = await crew.run("kickoff", input={})
    shown = await yard.kubectl(
        "get", "crun", run["id"].replace("_", "-", 1), "-o", "json", "--show-managed-fields"
    )
    raw = json.loads(shown)
    by_manager: dict[str, set[str]] = {}
    for entry in raw["metadata"]["managedFields"]:
        by_manager.setdefault(entry["manager"], set()).update(written(entry))
    assert set(by_manager) == {"crewyard-api", "crewyard-controller"}
    assert {name for name in by_manager["crewyard-api"] if name.startswith("status.")} == {
        "status.claim",
        "status.result",
    }
    assert not {name for name in by_manager["crewyard-controller"] if name.startswith("spec.")}
    assert parse_time(raw["status"]["startTime"]) <= parse_time(raw["status"]["completionTime"])


CONTROLLER = """
deployments.crewyard.dev [get list watch create patch delete]
deployments.crewyard.dev/finalizers [update]
deployments.crewyard.dev/status [patch]
events [create patch]
pods [get list watch create delete]
projects.crewyard.dev [get list watch]
projects.crewyard.dev/finalizers [update]
projects.crewyard.dev/status [patch]
runs.crewyard.dev [get list watch patch]
runs.crewyard.dev/finalizers [update]
runs.crewyard.dev/status [patch]
secrets [get]
"""
API = """
deployments.crewyard.dev [get list watch create patch delete]
pods [get list watch]
pods/log [get]
projects.crewyard.dev [get list watch create patch delete]
projects.crewyard.dev/finalizers [update]
runs.crewyard.dev [get list watch create patch delete]
runs.crewyard.dev/status [patch]
secrets [get create patch delete]
"""


API_ANYWHERE = {
    "subjectaccessreviews.authorization.k8s.io [create]",
    "tokenreviews.authentication.k8s.io [create]",
}


async def permissions(yard, account: str, namespace: str) -> set[str]:
    """What an account may do, without what every account may (asking about itself, discovery)."""
    listed = await yard.kubectl(
        "auth", "can-i", "--list", "-n", namespace, f"--as=system:serviceaccount:{SYSTEM}:{account}"
    )
    found = set()
    for line in listed.splitlines()[1:]:
        resource = line.split(" ", 1)[0]
        if resource and not resource.startswith("self"):
            verbs = re.findall(r"\[[^]]*\]", line)[-1]
            found.add(f"{resource} {verbs}")
    return found


@pytest.mark.parametrize(("account", "golden"), [("crewyard-controller", CONTROLLER), ("crewyard-api", API)])
async def test_accounts_may_do_what_they_do_and_nothing_else(yard, account, golden):
    wanted = {line for line in golden.splitlines() if line}
    elsewhere = await permissions(yard, account, "default")
    assert await permissions(yard, account, "crews") - elsewhere == wanted
    assert not [line for line in elsewhere if "*" in line]
    assert {line for line in elsewhere if ".k8s.io " in line} == (
        API_ANYWHERE if account == "crewyard-api" else set()
    )
    assert await permissions(yard, account, SYSTEM) == elsewhere
