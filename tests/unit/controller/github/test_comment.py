"""Comments on pull requests, by the state of the preview."""

import pytest

from controller.github.comment import comment
from controller.github.report import report
from crds.names import ANNOTATION_CLOSED, ANNOTATION_ERASED

SHA = "a" * 40
URL = "https://crews.example.org"


def of(make, github=None, url=URL, **more):
    settings = {"repository": "team/crew", "secretRef": {"name": "github"}, "comment": True}
    project = make.project(github=settings if github is None else github)
    deployment = make.deployment("dep-a", **{"gitSha": SHA, "preview": {"pullRequest": 7}, **more})
    return comment(project, deployment, report(project, deployment, url, (), make.now))


def test_a_built_preview_has_its_command_and_its_link(make):
    found = of(make, phase="Superseded")
    assert (found.repository, found.number) == ("team/crew", 7)
    assert found.body.splitlines()[1:] == [
        "**Crewyard**: the preview of `demo` at aaaaaaaaaaaa (uploaded) is built.",
        "",
        "```sh",
        "crewyard run dep_a --input '{}'",
        "```",
        "",
        f"[Deployment dep_a]({URL}/console/#/deployments/dep_a)",
    ]


def test_a_failure_is_quoted_without_formatting(make):
    error = {"reason": "CrewNotFound", "message": "no `crew.py`, ask @team/ops"}
    found = of(make, url="", phase="Failed", built=False, status={"error": error})
    assert found.body.splitlines()[1:] == [
        "**Crewyard**: the preview of `demo` at aaaaaaaaaaaa (uploaded) could not be built.",
        "",
        "`CrewNotFound: no 'crew.py', ask @team/ops`",
    ]


@pytest.mark.parametrize("why", [ANNOTATION_CLOSED, ANNOTATION_ERASED])
def test_a_removed_preview_is_deleted_also_before_its_pull_request_ends(make, why):
    found = of(make, url="", phase="Superseded", metadata={"annotations": {why: "why"}})
    assert found.body.splitlines()[1:] == [
        "**Crewyard**: the preview of `demo` at aaaaaaaaaaaa (uploaded) is deleted."
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"preview": None, "phase": "Active"},
        {"preview": {}},
        {"github": {"repository": "team/crew", "secretRef": {"name": "github"}}},
    ],
)
def test_no_comment_without_a_pull_request_or_the_setting(make, other):
    assert of(make, **{"phase": "Superseded", **other}) is None


def test_an_older_preview_does_not_replace_a_newer_one(make):
    building, built = of(make, phase="Building", built=False), of(make, phase="Superseded")
    assert built.replaces(building.body)
    assert not built.replaces(built.body)
    newer = building.body.replace(built.order, f"9{built.order[1:]}")
    assert not built.replaces(newer)
