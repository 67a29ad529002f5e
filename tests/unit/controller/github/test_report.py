"""GitHub reports of a Deployment, by its state."""

import base64

import pytest

from controller.github.credentials import CredentialsProblem, GitHubApp, GitHubToken, of_secret
from controller.github.report import LastReport, annotation, last_report, report
from crds.github import proven_commits
from crds.names import ANNOTATION_CLOSED, ANNOTATION_ERASED, ANNOTATION_GITHUB, ANNOTATION_PROVEN_COMMIT

SHA = "a" * 40
URL = "https://crews.example.org"
KEY = "0123456789abcdef0123456789abcdef"
COMMIT_SOURCE = {"git": {"url": "https://github.com/team/crew.git", "commit": SHA}}


def project(make):
    return make.project(github={"repository": "team/crew", "secretRef": {"name": "github"}})


def of(make, **more):
    more = {"source": COMMIT_SOURCE, **more}
    return report(project(make), make.deployment("dep-a", **more), URL, (KEY,), make.now)


def uploaded(make, proof, **more):
    """Return the report of an upload with this proof of its commit."""
    annotations = {} if proof is None else {ANNOTATION_PROVEN_COMMIT: proof}
    source = {"archive": {"upload": "upl_1"}}
    return of(make, source=source, gitSha=SHA, metadata={"annotations": annotations}, **more)


def proof(key=KEY, project="demo", upload="upl_1", repository="team/crew", commit=SHA):
    spec = {"project": project, "source": {"archive": {"upload": upload}}}
    return proven_commits.proof(key, spec, repository, commit)


def test_proven_commit_of_an_upload_is_reported_like_a_commit(make):
    found = uploaded(make, proof(repository="Team/Crew"), phase="Active")
    assert (found.context, found.environment, found.commit) == ("crewyard/demo", "demo", SHA)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "no proof, é",
        proof(key="another key of the installation"),
        proof(project="other"),
        proof(upload="upl_2"),
        proof(repository="team/other"),
        proof(commit="b" * 40),
    ],
)
def test_unproven_commit_is_reported_where_no_branch_rule_waits(make, given):
    found = uploaded(make, given, phase="Active")
    assert (found.context, found.environment) == ("crewyard/demo/uploaded", "demo/uploaded")
    preview = uploaded(make, given, phase="Superseded", preview={"pullRequest": 7})
    assert preview.environment == "demo/pull-7/uploaded"


def test_commit_that_was_built_is_reported_not_the_one_that_was_named(make):
    assert of(make, gitSha="b" * 40).commit == SHA


@pytest.mark.parametrize(
    ("phase", "built", "state", "commit"),
    [
        ("Pending", False, "queued", "pending"),
        ("Building", False, "in_progress", "pending"),
        ("Active", True, "success", "success"),
        ("Superseded", True, "inactive", "success"),
        ("Failed", False, "failure", "failure"),
    ],
)
def test_each_phase_has_its_states(make, phase, built, state, commit):
    found = of(make, phase=phase, built=built)
    assert (found.state, found.commit_state) == (state, commit)
    assert (found.context, found.environment, found.transient) == ("crewyard/demo", "demo", False)
    assert found.log_url == f"{URL}/console/#/deployments/dep_a"


def test_failure_description_fits_the_limit_of_github(make):
    error = {"reason": "DependencyResolution", "message": "no version\nfits " + "x" * 300}
    found = of(make, phase="Failed", built=False, status={"error": error})
    assert found.description.startswith("DependencyResolution: no version fits xxx")
    assert len(found.description) == 140
    assert found.description.endswith("…")


def test_skipped_commit_is_not_a_failure(make):
    error = {"reason": "Superseded", "message": "a newer commit is deployed"}
    found = of(make, phase="Failed", built=False, status={"error": error})
    assert (found.state, found.commit_state) == ("error", "error")
    assert found.description == "Not built: a newer commit is deployed"


@pytest.mark.parametrize(
    ("preview", "environment"), [({}, "demo/preview"), ({"pullRequest": 7}, "demo/pull-7")]
)
def test_built_preview_succeeds_in_its_own_environment(make, preview, environment):
    found = of(make, phase="Superseded", preview=preview)
    assert (found.state, found.environment, found.transient) == ("success", environment, True)


def test_erased_preview_is_inactive(make):
    preview = make.deployment("dep-a", source=COMMIT_SOURCE, preview={"pullRequest": 7}, phase="Superseded")
    preview.raw["metadata"]["annotations"] = {ANNOTATION_ERASED: "true"}
    assert report(project(make), preview, URL, (KEY,), make.now).state == "inactive"


def test_preview_of_a_closed_pull_request_is_inactive(make):
    def closed(**more):
        deployment = make.deployment("dep-a", source=COMMIT_SOURCE, preview={"pullRequest": 7}, **more)
        deployment.raw["metadata"]["annotations"] = {ANNOTATION_CLOSED: "pull request 7"}
        return report(project(make), deployment, URL, (KEY,), make.now)

    assert (closed(phase="Superseded").state, closed(phase="Superseded").commit_state) == (
        "inactive",
        "success",
    )
    assert closed(phase="Failed", built=False).state == "failure"
    assert closed(phase="Building", built=False).commit_state == "pending"


@pytest.mark.parametrize("sha", ["", "main", "A" * 40, "a" * 39, "../" + "a" * 37])
def test_deployment_without_a_commit_is_not_reported(make, sha):
    assert of(make, source={"archive": {"upload": "upl_1"}}, gitSha=sha) is None


def test_project_without_github_reports_nothing(make):
    assert report(make.project(), make.deployment(source=COMMIT_SOURCE), URL, (KEY,), make.now) is None


def test_old_deployment_is_not_reported(make):
    old = {"creationTimestamp": make.ago(3 * 86400)}
    assert of(make, metadata=old) is None
    known = {**old, "annotations": {ANNOTATION_GITHUB: "success 12"}}
    assert of(make, metadata=known, phase="Superseded").state_changed(LastReport("success", 12))


def test_annotation_round_trips(make):
    found = of(make, phase="Active")
    text = annotation(found, 42)
    assert last_report(make.deployment(metadata={"annotations": {ANNOTATION_GITHUB: text}})) == LastReport(
        "success", 42
    )
    assert not found.state_changed(LastReport("success", 42))


@pytest.mark.parametrize("text", ["", "success", "success x", "42", "success 4 2", "SUCCESS 4"])
def test_foreign_annotation_is_ignored(make, text):
    assert last_report(make.deployment(metadata={"annotations": {ANNOTATION_GITHUB: text}})) is None


def test_rollback_changes_no_commit_status(make):
    again = of(make, phase="Active")
    assert again.state_changed(LastReport("inactive", 1))
    assert not again.commit_state_changed(LastReport("inactive", 1))


def secret(**data):
    return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def test_secret_holds_a_token_or_an_app():
    assert of_secret(secret(token=" t \n"), "s") == GitHubToken("t")
    app = secret(githubAppID="1", githubAppInstallationID="2", githubAppPrivateKey="PEM")
    assert of_secret(app, "s") == GitHubApp("1", "2", "PEM")


@pytest.mark.parametrize(
    ("secret_data", "message"),
    [
        (None, "Secret s does not exist"),
        (secret(), "neither token nor a complete App"),
        (secret(githubAppID="1"), "githubAppInstallationID, githubAppPrivateKey are missing"),
        (
            secret(githubAppID="1/..", githubAppInstallationID="2", githubAppPrivateKey="canary"),
            "githubAppID of the Secret s must be a number",
        ),
        ({"data": {"token": "/w=="}}, "token of the Secret s is not UTF-8 text"),
    ],
)
def test_invalid_secret_error_names_the_key(secret_data, message):
    with pytest.raises(CredentialsProblem, match=message) as caught:
        of_secret(secret_data, "s")
    assert "canary" not in str(caught.value)
