"""Requests of commit statuses as GitLab and Gitea document them, and the meaning of their responses."""

import pytest

from controller.commit_status.request import StatusProblem, problem_of, read_token, status_request
from controller.github.report import commit_report

SHA = "a" * 40
SOURCE = {"git": {"url": "https://git.example.com/team/crew.git", "commit": SHA}}


def report_of(make, repository="team/crew", **more):
    deployment = make.deployment("dep-a", source=SOURCE, **more)
    return commit_report(make.project(), deployment, repository, False, "https://crews.example.org", make.now)


def test_gitlab_gets_the_path_of_the_project_in_one_segment(make):
    report = report_of(make, "group/sub/crew", phase="Active")
    request = status_request("gitlab", "https://gitlab.example.com", "secret", report)
    assert request.url == f"https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fcrew/statuses/{SHA}"
    assert request.headers == {"PRIVATE-TOKEN": "secret"}
    assert request.body == {
        "state": "success",
        "description": "Active",
        "context": "crewyard/demo",
        "target_url": "https://crews.example.org/console/#/deployments/dep_a",
    }
    assert "secret" not in repr(request)


def test_gitea_gets_owner_and_name(make):
    request = status_request("gitea", "https://gitea.example.com", "secret", report_of(make, phase="Active"))
    assert request.url == f"https://gitea.example.com/api/v1/repos/team/crew/statuses/{SHA}"
    assert request.headers == {"Authorization": "token secret"}
    assert request.body["state"] == "success"


@pytest.mark.parametrize(
    ("phase", "reason", "gitlab", "gitea"),
    [
        ("Pending", None, "pending", "pending"),
        ("Building", None, "running", "pending"),
        ("Superseded", None, "success", "success"),
        ("Failed", "BuildFailed", "failed", "failure"),
        ("Failed", "Canceled", "canceled", "error"),
    ],
)
def test_each_provider_has_its_states(make, phase, reason, gitlab, gitea):
    status = {"error": {"reason": reason, "message": "m"}} if reason else {}
    report = report_of(make, phase=phase, built=phase == "Superseded", status=status)
    for provider, state in (("gitlab", gitlab), ("gitea", gitea)):
        assert status_request(provider, "https://host", "t", report).body["state"] == state


def test_an_upload_is_reported_where_no_rule_waits(make):
    deployment = make.deployment("dep-a", gitSha=SHA, phase="Active")
    report = commit_report(make.project(), deployment, "team/crew", False, "", make.now)
    assert report.context == "crewyard/demo/uploaded" and report.log_url is None


@pytest.mark.parametrize(
    ("provider", "status", "headers", "text", "transient", "pause"),
    [
        ("gitlab", 201, {}, "{}", None, 0),
        ("gitlab", 400, {}, "Cannot transition status via :enqueue from :pending", None, 0),
        ("gitea", 400, {}, "Cannot transition status via :enqueue from :pending", False, 0),
        ("gitea", 401, {}, "", False, 0),
        ("gitlab", 302, {"Location": "https://elsewhere.example.com"}, "", False, 0),
        ("gitlab", 404, {}, "", False, 0),
        ("gitlab", 409, {}, "Another update to this commit status is in progress", True, 0),
        ("gitlab", 429, {}, "", True, 60),
        ("gitlab", 429, {"Retry-After": "7"}, "", True, 7),
        ("gitea", 503, {"Retry-After": "soon"}, "", True, 0),
    ],
)
def test_responses(provider, status, headers, text, transient, pause):
    problem = problem_of(provider, status, headers, text)
    assert (problem and problem.transient) == transient
    assert (problem.retry_after if problem else 0) == pause


@pytest.mark.parametrize("value", [None, b"", b" ", b"two\nlines", b"\xff"])
def test_a_secret_without_a_token_is_named_without_its_value(value):
    with pytest.raises(StatusProblem, match="the key token of the Secret gitlab"):
        read_token({"data": {}}, "gitlab", value)
