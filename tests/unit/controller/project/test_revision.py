"""What a head asks for: whole Revisions, and the limits."""

import pytest

from controller.owner import reference
from controller.project.revision import (
    MAX_ATTEMPTS,
    Revision,
    desired_spec,
    recorded_attempts,
    resolve_revision,
)
from controller.runtime.decision import Create
from controller.source.observed import ObservedSource
from crds import kinds
from crds.deployment_name import git_name

GIT = {"url": "https://example.org/x.git"}
COMMIT = "c" * 40


def test_commit_retries_are_bounded(make):
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = ObservedSource(GIT, "2099-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    spec = desired_spec(project, look)
    more = {key: value for key, value in spec.items() if key != "project"}
    tried = [
        make.deployment(git_name(project.uid, spec, attempt), built=False, phase="Failed", **more)
        for attempt in range(1, MAX_ATTEMPTS + 1)
    ]
    assert resolve_revision(project, tried[:-1], look).create is not None
    last = resolve_revision(project, tried, look)
    assert last.create is None and last.deployment == tried[-1]


@pytest.mark.parametrize("more", [{"path": "agents/a", "crew": "b"}, {"path": "", "crew": ""}, {}])
@pytest.mark.parametrize(("subject", "requested_at"), [("Subject", "2026-11-21T12:00:00Z"), ("", "")])
def test_new_head_asks_for_a_deployment_of_what_the_project_names(make, more, subject, requested_at):
    git = {**GIT, **more}
    project = make.project(source={"git": git})
    look = ObservedSource(git, requested_at, "main", COMMIT, "t", subject)
    named = {key: value for key, value in more.items() if value}
    path = {"path": named.pop("path")} if named else {}
    spec = {
        "project": "demo",
        "source": {"git": {**GIT, "commit": COMMIT, **path}},
        "gitSha": COMMIT,
        **named,
        **({"message": subject} if subject else {}),
        "attempt": 1,
    }
    metadata = {
        "name": git_name("uid-demo", spec, 1),
        "labels": {"crewyard.dev/project": "demo"},
        "annotations": {
            "crewyard.dev/polled": "true",
            **({"crewyard.dev/requestedAt": requested_at} if requested_at else {}),
        },
        "ownerReferences": [reference(kinds.PROJECT, project)],
    }
    source = {"commit": COMMIT, "tree": "t", "path": more.get("path"), "crew": more.get("crew")}
    create = Create(kinds.DEPLOYMENT, {"metadata": metadata, "spec": spec})
    assert resolve_revision(project, [], look) == Revision(create=create, moved=True, source=source)


SOURCE = {"commit": COMMIT, "tree": "t", "path": None, "crew": None}


def attempts_at(make, count, **last):
    """Deployments of the head, of which the last one is as given and the others failed."""
    project = make.project(source={"git": GIT})
    spec = {key: value for key, value in desired_spec(project, LOOK).items() if key != "project"}
    each = [{"order": number, "phase": "Failed", "built": False} for number in range(1, count)] + [last]
    return [
        make.deployment(git_name(project.uid, spec, number), **spec, attempt=number, **more)
        for number, more in enumerate(each, 1)
    ]


FAILED = {"built": False, "phase": "Failed"}
ELSEWHERE = {"commit": "b" * 40, "tree": "other"}


def test_another_attempt_after_a_restart_keeps_the_message(make):
    """A restarted controller does not fetch a recorded commit again, so it has no subject."""
    tried = attempts_at(make, 1, **FAILED)
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = ObservedSource(GIT, "2099-01-01T00:00:00Z", "main", COMMIT, "t")
    create = resolve_revision(project, tried, look).create
    assert create.body["spec"] == {**tried[0].spec, "attempt": 2}


@pytest.mark.parametrize(
    ("recorded", "last", "moved", "retried"),
    [
        pytest.param({}, {}, True, False, id="first head, built"),
        pytest.param({}, FAILED, True, False, id="first head, failed before it got an order"),
        pytest.param(ELSEWHERE, {}, True, False, id="another head, built"),
        pytest.param(ELSEWHERE, {"order": 9}, True, False, id="another head, built and ordered"),
        pytest.param(ELSEWHERE, FAILED, True, True, id="another head, failed before it got an order"),
        pytest.param(ELSEWHERE, {**FAILED, "order": 9}, True, True, id="another head, failed"),
        pytest.param({**SOURCE, "tree": "other"}, FAILED, True, False, id="same commit, without an order"),
        pytest.param({**SOURCE, "tree": "other"}, {**FAILED, "order": 1}, True, True, id="same commit"),
        pytest.param({**SOURCE, "crew": "b"}, {}, True, False, id="another crew"),
        pytest.param(SOURCE, {}, False, False, id="no move, built"),
        pytest.param(SOURCE, {**FAILED, "order": 9}, False, False, id="no move, failed"),
        pytest.param({**SOURCE, "commit": "b" * 40}, FAILED, False, False, id="commit outside the path"),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_moved_head_whose_last_attempt_failed_earlier_asks_for_another(
    make, recorded, last, moved, retried, count
):
    attempts = attempts_at(make, count, **last)
    project = make.project(source={"git": GIT}, status={"source": recorded})
    found = resolve_revision(project, attempts[::-1], LOOK)
    if retried:
        assert found == Revision(create=found.create, moved=moved, source=SOURCE)
        assert found.create.body["spec"] == {**attempts[-1].spec, "attempt": count + 1}
    else:
        assert found == Revision(deployment=attempts[-1], moved=moved, source=SOURCE)


@pytest.mark.parametrize(
    ("requested_at", "last", "retried"),
    [
        pytest.param("2026-11-21T11:59:31Z", FAILED, True, id="after it failed"),
        pytest.param("2026-11-21T11:59:30Z", FAILED, True, id="in the second in which it failed"),
        pytest.param("2026-11-21T11:59:29Z", FAILED, False, id="during its build"),
        pytest.param("2026-11-21T11:59:31Z", {}, False, id="built"),
        pytest.param("2026-11-21T12:00:00", FAILED, False, id="time without a zone"),
        pytest.param("now", FAILED, False, id="no time"),
        pytest.param("", FAILED, False, id="not requested"),
    ],
)
def test_request_after_a_failure_is_another_attempt(make, requested_at, last, retried):
    [tried] = attempts_at(make, 1, **last)
    if tried.failed:
        failed_at = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T11:59:30Z"}
        tried.raw["status"]["conditions"] = [failed_at]
    project = make.project(source={"git": GIT}, status={"source": SOURCE})
    look = ObservedSource(GIT, requested_at, "main", COMMIT, "t", "subject")
    found = resolve_revision(project, [tried], look)
    if retried:
        assert found == Revision(create=found.create, source=SOURCE)
        assert found.create.body["spec"] == {**tried.spec, "attempt": 2}
    else:
        assert found == Revision(deployment=tried, source=SOURCE)
    # Without a Deployment nothing has been tried.
    assert resolve_revision(project, [], look) == Revision(source=SOURCE)


def test_attempts_at_the_recorded_head_are_of_its_source_and_this_project(make):
    def made(attempt=1, uid="uid-demo", named=True, preview=None, **changed):
        git = {**GIT, "path": "a", "commit": COMMIT}
        spec = {"source": {"git": {**git, **changed.pop("git", {})}}, "crew": "b", **changed}
        if preview:
            spec["preview"] = preview
        name = git_name(uid, spec, attempt)
        return make.deployment(name, **spec, **({"attempt": attempt} if named else {}))

    attempts = [made(named=False), made(2), made(10)]
    others = [
        made(git={"commit": "b" * 40}),
        made(git={"url": "https://example.org/other.git"}),
        made(git={"path": "b"}),
        made(git={"path": ""}),
        made(crew="c"),
        made(preview={"pullRequest": 1}),
        made(uid="uid-earlier"),
        make.deployment("dep-posted", **attempts[0].spec | {"project": "demo"}),
        make.deployment("dep-upload"),
    ]
    deployments = [*others, *attempts[::-1]]

    def recorded(source, **git):
        project = make.project(source={"git": {**GIT, "path": "a", "crew": "other now", **git}})
        status = {"source": source} if source is not None else {}
        return recorded_attempts(type(project)({**project.raw, "status": status}), deployments)

    source = {**SOURCE, "crew": "b"}
    assert recorded(source) == attempts
    assert recorded(source, path="c") == recorded({}) == recorded(None) == []
    uploads = make.project(status={"source": source})
    assert recorded_attempts(uploads, deployments) == []


def at(project, crew):
    """A deployment of the head's commit for a crew."""
    git = {**GIT, "crew": crew}
    spec = desired_spec(type(project)({**project.raw, "spec": {"source": {"git": git}}}), LOOK)
    return git_name(project.uid, spec, 1), {key: value for key, value in spec.items() if key != "project"}


LOOK = ObservedSource(GIT, "", "main", COMMIT, "t", "subject")


def test_only_a_change_of_crew_counts_as_a_head_move(make):
    seen = {"commit": COMMIT, "tree": "t", "crew": "b"}
    project = make.project(
        source={"git": {**GIT, "crew": "b"}}, status={"source": seen, "observedGeneration": 0}
    )
    (first, spec_a), (second, spec_b) = at(project, "a"), at(project, "b")
    # Crew a was rolled back to after crew b had been deployed from the same commit.
    deployments = [make.deployment(first, order=3, **spec_a), make.deployment(second, order=2, **spec_b)]
    assert not resolve_revision(project, deployments, LOOK).moved
    back = make.project(source={"git": {**GIT, "crew": "a"}}, status={"source": seen})
    assert resolve_revision(back, deployments, LOOK).moved


def test_future_request_is_handled_once(make):
    asked = "2099-01-01T00:00:00Z"
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = ObservedSource(GIT, asked, "main", COMMIT, "t", "subject")
    spec = desired_spec(project, look)
    more = {key: value for key, value in spec.items() if key != "project"}
    first = make.deployment(git_name(project.uid, spec, 1), built=False, phase="Failed", **more)
    again = resolve_revision(project, [first], look).create
    assert again.body["spec"]["attempt"] == 2
    assert again.body["metadata"]["labels"] == {"crewyard.dev/project": project.name}
    metadata = {"annotations": again.body["metadata"]["annotations"]}
    second = make.deployment(again.name, built=False, phase="Failed", metadata=metadata, **more, attempt=2)
    assert resolve_revision(project, [first, second], look).create is None
    later = ObservedSource(GIT, "2100-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    assert resolve_revision(project, [first, second], later).create is not None


def test_request_after_a_commit_outside_the_path_is_an_attempt(make):
    git = {**GIT, "path": "a", "crew": "b"}
    source = {"commit": COMMIT, "tree": "t", "crew": "b"}
    project = make.project(source={"git": git}, status={"source": source})
    failed_spec = desired_spec(project, ObservedSource(git, "", "main", "b" * 40, "t", "before"))
    more = {key: value for key, value in failed_spec.items() if key != "project"}
    failed = make.deployment("dep-b", built=False, phase="Failed", order=1, **more)
    look = ObservedSource(git, "2099-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    again = resolve_revision(project, [failed], look).create
    assert (again.body["spec"]["source"]["git"]["commit"], again.body["spec"]["attempt"]) == (COMMIT, 1)
    assert resolve_revision(project, [failed], ObservedSource(git, "", "main", COMMIT, "t")).create is None
    # One attempt for each value.
    metadata = {"annotations": again.body["metadata"]["annotations"]}
    spec = {key: value for key, value in again.body["spec"].items() if key != "project"}
    second = make.deployment(again.name, built=False, phase="Failed", order=2, metadata=metadata, **spec)
    assert resolve_revision(project, [failed, second], look).create is None
    # A success since then leaves nothing to try again.
    built = make.deployment("dep-c", order=3, phase="Active", **more)
    assert resolve_revision(project, [failed, built], look).create is None
